import { isFailure, isRecord } from '../../core/index.ts'
import {
  failFor,
  findFhirPathWrittenParts,
  findReferredPatients,
  type Interaction,
  isFhirPathPatch,
  isResource,
  limits,
  type Misunderstood,
  misunderstand,
  namesOtherPatient,
  parseEntries,
  type Resource,
  runAtOnce,
  toMisunderstood,
  Work,
  type WrittenPart,
} from '../../fhir/index.ts'
import {
  type Access,
  computeAccess,
  type EnforcementPolicy,
  type Grant,
  type GrantedAccess,
  isWritable,
} from '../../smart/index.ts'
import type { Refusal } from '../refuse.ts'
import { deny } from './check-type.ts'
import { decide } from './decide.ts'
import type { Decision } from './decision.ts'

/** The work of a request that is checked without a pause. */
export function createHostWork(): Work {
  return new Work(limits.WORK_UNITS_AT_ONCE)
}

/**
 * Decides on a request with its body: the content of a write, and every entry of a Bundle. The first refused entry
 * refuses the Bundle. Without a body it checks the interaction only.
 */
export function checkRequest(
  interaction: Interaction,
  body: unknown,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess = computeAccess(grant, policy),
  work: Work = createHostWork(),
): Decision {
  const decision = decide(interaction, grant, policy, access, work)
  if (!decision.allowed || body === undefined) return decision
  if (interaction.kind === 'bundle') return checkBundle(decision, body, grant, policy, access, work)
  const refusal = checkWrite(interaction, body, decision.access, policy.fhirBaseUrl)
  return refusal ? deny(refusal) : decision
}

function checkBundle(
  bundle: Decision,
  body: unknown,
  grant: Grant,
  policy: EnforcementPolicy,
  access: GrantedAccess,
  work: Work,
): Decision {
  const entries = readEntries(body, policy.fhirBaseUrl, grant, access, work)
  if (isFailure(entries)) return deny(entries)
  const decisions = entries.map(entry =>
    isFailure(entry.interaction)
      ? deny(entry.interaction)
      : checkRequest(entry.interaction, entry.body, grant, policy, access, work),
  )
  const refused = decisions.find(decision => !decision.allowed)
  if (refused || !bundle.allowed) return refused ?? bundle
  const limited = decisions.find(decision => decision.allowed && decision.within !== 'everything')
  return limited?.allowed ? { ...bundle, within: limited.within } : bundle
}

/** One request inside a batch or transaction. */
export interface CheckedEntry {
  readonly interaction: Interaction | Misunderstood
  readonly body: unknown
}

/**
 * Reads the requests of a Bundle with the parser that the server uses. References of a transaction are resolved first,
 * because the resolved references are what is written.
 */
export function readEntries(
  bundle: unknown,
  baseUrl: string,
  grant: Grant,
  access: Access,
  work: Work,
): readonly CheckedEntry[] | Misunderstood {
  const parsed = runAtOnce(parseEntries(bundle, baseUrl, work))
  if (isFailure(parsed)) return toMisunderstood(parsed)
  const { type, entries } = parsed
  if (type === 'batch') return entries
  const references = new Map<unknown, string>(
    entries.flatMap(({ fullUrl, interaction }) => listFullUrl(fullUrl, interaction)),
  )
  const resolveReference = (text: string) => references.get(text) ?? resolveConditional(text, grant, access)
  return entries.map(({ interaction, body }) => ({
    interaction,
    body: resolveReferences(body, resolveReference),
  }))
}

// A resource that an entry creates has no id yet. Its URL stays as it is, and a new Patient counts as another patient.
function listFullUrl(
  fullUrl: unknown,
  interaction: Interaction | Misunderstood,
): readonly (readonly [unknown, string])[] {
  if (interaction.kind === 'create' && interaction.type === 'Patient') return [[fullUrl, NEW_PATIENT]]
  if (interaction.kind !== 'update') return []
  return [[fullUrl, `${interaction.type}/${interaction.id}`]]
}

const NEW_PATIENT = 'http://new.invalid/Patient/new'

/** `Patient?identifier=…` is a search, which under a limited grant can only find the patient of the token. */
function resolveConditional(text: string, { patient }: Grant, access: Access): string | undefined {
  if (!text.startsWith('Patient?') || patient === undefined) return undefined
  const filter = access.filterFor('Patient', 's')
  const own = filter !== 'everything' && filter.length > 0 && filter.every(limit => limit.patient === patient)
  return own ? `Patient/${patient}` : undefined
}

function resolveReferences(value: unknown, resolveReference: (text: string) => string | undefined): unknown {
  if (Array.isArray(value)) return value.map(item => resolveReferences(item, resolveReference))
  if (!isRecord(value)) return value
  const resolved: [string, unknown][] = Object.entries(value).map(([name, item]) => [
    name,
    name === 'reference' && typeof item === 'string'
      ? (resolveReference(item) ?? item)
      : resolveReferences(item, resolveReference),
  ])
  return Object.fromEntries(resolved)
}

/** Checks the content of a write, as far as that is possible without stored data. */
function checkWrite(
  interaction: Interaction,
  body: unknown,
  access: Access,
  baseUrl: string,
): Refusal | undefined {
  switch (interaction.kind) {
    case 'create':
    case 'update':
    case 'update-conditional': {
      const { kind, type } = interaction
      const id = kind === 'update' ? interaction.id : undefined
      const filter = access.filterFor(type, kind === 'create' ? 'c' : 'u')
      return checkWrittenResource(body, type, id, filter, baseUrl)
    }
    case 'patch':
    case 'patch-conditional':
      return checkPatchedParts(body, interaction.type, access.filterFor(interaction.type, 'u'), baseUrl)
    default:
      return undefined
  }
}

type Filter = ReturnType<Access['filterFor']>

const OUTSIDE = failFor('content-not-within')

function checkWrittenResource(
  body: unknown,
  type: string,
  id: string | undefined,
  filter: Filter,
  baseUrl: string,
): Refusal | undefined {
  if (!isResource(body)) return misunderstand('written-body-not-a-resource')
  if (body.resourceType !== type) return misunderstand('written-type-differs')
  if (id !== undefined && body.id !== id) return misunderstand('written-id-differs')
  return isWritable(body, filter, baseUrl) ? undefined : OUTSIDE
}

/** The server checks the result of a patch. A patch that mentions another patient is refused before. */
function checkPatchedParts(
  body: unknown,
  type: string,
  filter: Filter,
  baseUrl: string,
): Refusal | undefined {
  const patched = collectPatchedParts(body, type)
  if (!patched) return misunderstand('patch-of-unknown-kind')
  if (filter === 'everything') return undefined
  const parts: Resource = { ...patched, resourceType: type }
  const referred = [...findReferredPatients(parts, baseUrl)]
  const allows = filter.some(
    ({ patient, exclusive }) =>
      !exclusive ||
      patient === undefined ||
      (!namesOtherPatient(parts, patient, baseUrl) && referred.every(id => id === patient)),
  )
  return allows ? undefined : OUTSIDE
}

type Node = Record<string, unknown>

/**
 * Collects what a patch writes as a partial resource: the values that it adds and replaces, without those that a later
 * operation removes. Values moved or copied from the stored resource are unknown. Undefined if it is not a patch.
 */
export function collectPatchedParts(
  patch: unknown,
  type: string,
): Readonly<Record<string, unknown>> | undefined {
  const parts = isFhirPathPatch(patch) ? findFhirPathWrittenParts(patch, type) : readJsonPatch(patch)
  if (!parts) return undefined
  const root: Node = {}
  const sizes: Sizes = new WeakMap([[root, 0]])
  for (const { steps, value } of parts) if (steps.length > 0) setValue(root, steps, value, sizes)
  return restoreLists(root) as Readonly<Record<string, unknown>>
}

function readJsonPatch(patch: unknown): readonly WrittenPart[] | undefined {
  if (!Array.isArray(patch) || !patch.every(isRecord)) return undefined
  return patch.flatMap(({ op, path, value }) => {
    if (typeof path !== 'string' || !path.startsWith('/')) return []
    const steps = path
      .slice(1)
      .split('/')
      .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    if (op === 'add' || op === 'replace') return [{ steps, value }]
    return op === 'remove' ? [{ steps, value: undefined }] : []
  })
}

/** The number of members of each node. Other objects are values of the patch, which stay as they are. */
type Sizes = WeakMap<object, number>

function setValue(root: Node, steps: readonly string[], value: unknown, sizes: Sizes): void {
  let node = root
  for (const step of steps.slice(0, -1)) node = openMember(node, step, sizes)
  const last = steps.at(-1) ?? ''
  // RFC 6902, 4.1: `-` appends an element.
  addMember(node, last === '-' ? `${sizes.get(node)}` : last, value, sizes)
}

/** The member as a node: made if it is absent, and copied once if it is a value of the patch. */
function openMember(node: Node, name: string, sizes: Sizes): Node {
  const below = Object.hasOwn(node, name) ? node[name] : undefined
  const isObject = typeof below === 'object' && below !== null
  if (isObject && sizes.has(below)) return below as Node
  const next: Node = isObject ? { ...below } : {}
  sizes.set(next, Object.keys(next).length)
  addMember(node, name, next, sizes)
  return next
}

function addMember(node: Node, name: string, value: unknown, sizes: Sizes): void {
  if (!Object.hasOwn(node, name)) sizes.set(node, (sizes.get(node) ?? 0) + 1)
  defineMember(node, name, value)
}

// `__proto__` must become a member, not the prototype.
function defineMember(node: Node, name: string, value: unknown): void {
  Object.defineProperty(node, name, { value, enumerable: true, writable: true })
}

/** Turns objects whose member names are numbers back into lists. */
function restoreLists(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).filter(([, it]) => it !== undefined)
  if (entries.length > 0 && entries.every(([name]) => /^\d+$/.test(name)))
    return entries.map(([, it]) => restoreLists(it))
  const node: Node = {}
  for (const [name, it] of entries) defineMember(node, name, restoreLists(it))
  return node
}

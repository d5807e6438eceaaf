import { randomUUID } from 'node:crypto'
import { isFailure, isRecord } from '../../core/index.ts'
import {
  type Entry,
  type EntryInteraction,
  type ExactResource,
  failAt,
  failFor,
  parseReference,
  type Work,
} from '../../fhir/index.ts'
import { seesAll } from '../../smart/index.ts'
import { listReferenceElements, parseConditionalReference } from '../access/check-references.ts'
import type { Context } from '../context.ts'
import type { PlannedWrite } from '../interactions/plan-change.ts'
import { findMatch, isWriteRequest, planWrite } from '../interactions/plan-write.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'

export type PlannedRequest = FhirRequest<EntryInteraction>

/** A planned entry: a change, a response that is known already, or a request that reads. */
export type BundleStep = WriteStep | ReadStep | KnownStep

export interface WriteStep {
  readonly kind: 'write'
  readonly entry: number
  readonly request: PlannedRequest
  readonly planned: PlannedWrite
  /** `Type/id`. If the backend chooses the id, a random one replaces it in the checks. */
  readonly identity: string
  /** The new content with references to these identities. */
  readonly content?: ExactResource
}

interface KnownStep {
  readonly kind: 'known'
  readonly entry: number
  readonly request: PlannedRequest
  readonly response: FhirResponse
  readonly identity: string | undefined
}

interface ReadStep {
  readonly kind: 'read'
  readonly entry: number
  readonly request: PlannedRequest
}

/** Plans an entry. Conditional references in its content are replaced. */
export async function planStep(
  context: Context,
  request: PlannedRequest,
  entry: number,
): Promise<BundleStep | Failure> {
  if (!isWriteRequest(request)) return planRead(context, request, entry)
  const planned = await planWrite(context, request)
  if (isFailure(planned)) return planned
  if (planned.kind === 'response') {
    const { match, response } = planned
    return { kind: 'known', entry, request, response, identity: match && `${match.type}/${match.id}` }
  }
  const { write } = planned
  const step = {
    kind: 'write',
    entry,
    request,
    planned,
    identity: `${write.type}/${write.id ?? randomUUID()}`,
  } as const
  if (write.kind === 'delete') return step
  const targets = await resolveConditionalReferences(context, request, write.resource)
  if (isFailure(targets)) return targets
  return { ...step, planned: withContent(planned, linkReferences(write.resource, targets, context.baseUrl)) }
}

function planRead({ session }: Context, request: PlannedRequest, entry: number): BundleStep | Failure {
  const { interaction } = request
  if (interaction.kind === 'operation' && session.mayChange?.(interaction))
    return failFor('unsupported-operation', { name: interaction.name })
  return { kind: 'read', entry, request }
}

function withContent(planned: PlannedWrite, resource: ExactResource, fullUrl?: string): PlannedWrite {
  const { write } = planned
  switch (write.kind) {
    case 'create':
      return { ...planned, write: { ...write, resource, fullUrl } }
    case 'update':
      return { ...planned, write: { ...write, resource } }
    case 'delete':
      return planned
  }
}

/** R4 http.html#trules: no two entries may write the same resource. */
export function findRepeatedWrite(steps: readonly BundleStep[]): Failure | undefined {
  const written = new Set<string>()
  for (const step of steps) {
    if (step.kind === 'read') continue
    const names = [step.kind === 'write' ? step.identity : undefined, findCondition(step.request)]
    for (const name of names) {
      if (name === undefined) continue
      if (written.has(name)) return failAt(step.entry, failFor('entries-write-the-same'))
      written.add(name)
    }
  }
  return undefined
}

function findCondition({ interaction }: FhirRequest): string | undefined {
  return interaction.kind === 'create' && interaction.ifNoneExist
    ? `${interaction.type}?${JSON.stringify(interaction.ifNoneExist)}`
    : undefined
}

/** Replaces references to `fullUrl`s by the identities of the entries. */
export async function linkSteps(
  { baseUrl }: Context,
  steps: readonly BundleStep[],
  entries: readonly Entry[],
  work: Work,
): Promise<readonly BundleStep[]> {
  const identities = new Map<string, string>()
  const known = new Map<string, string>()
  for (const step of steps) {
    const fullUrl = entries[step.entry]?.fullUrl
    if (fullUrl === undefined || step.kind === 'read' || step.identity === undefined) continue
    identities.set(fullUrl, step.identity)
    if (!hasRandomIdentity(step)) known.set(fullUrl, step.identity)
  }
  const linked: BundleStep[] = []
  for (const step of steps) {
    linked.push(link(step))
    await work.pause()
  }
  return linked

  function link(step: BundleStep): BundleStep {
    if (step.kind !== 'write' || step.planned.write.kind === 'delete') return step
    const { resource } = step.planned.write
    const sent = linkReferences(resource, known, baseUrl)
    const fullUrl = hasRandomIdentity(step) ? entries[step.entry]?.fullUrl : undefined
    return {
      ...step,
      planned: withContent(step.planned, sent, fullUrl),
      content: known.size === identities.size ? sent : linkReferences(resource, identities, baseUrl),
    }
  }
}

function hasRandomIdentity(step: BundleStep): boolean {
  return step.kind === 'write' && step.planned.write.id === undefined
}

/**
 * If the backend resolves `fullUrl`s, each must be a `urn:` or the URL of the entry's own resource. Another URL could mean
 * one resource here and another one there.
 */
export function checkFullUrls(entries: readonly Entry[], baseUrl: string): Failure | undefined {
  const known = new Set<string>()
  for (const [entry, { fullUrl, interaction }] of entries.entries()) {
    if (fullUrl === undefined) continue
    const own = parseReference(fullUrl, baseUrl)
    const isOwn = 'id' in interaction && own?.type === interaction.type && own?.id === interaction.id
    if (known.has(fullUrl) || !(fullUrl.startsWith('urn:') || isOwn))
      return failAt(entry, failFor('entry-full-url-unusable'))
    known.add(fullUrl)
  }
  return undefined
}

/** `Type/id` by `fullUrl` or by conditional reference. */
type Targets = ReadonlyMap<string, string>

// Not references, even if they look like one: `Identifier.value` may be a `urn:uuid:`.
const NOT_REFERENCES = new Set(['value', 'system', 'id', 'div', 'data'])

/**
 * Replaces the references that are valid only inside the Bundle (`urn:uuid:…` and other `fullUrl`s) and conditional
 * references (`Patient?identifier=…`, R4 http.html#trules).
 */
function linkReferences(content: ExactResource, targets: Targets, baseUrl: string): ExactResource {
  return targets.size === 0 ? content : (link(content, '') as ExactResource)

  function link(value: unknown, key: string): unknown {
    if (typeof value === 'string') return linkText(value, key)
    if (Array.isArray(value)) return value.map(item => link(item, key))
    if (!isRecord(value)) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, link(item, name)]))
  }

  function linkText(text: string, key: string): string {
    if (key === 'reference') return targets.get(text) ?? targets.get(toUrl(text) ?? '') ?? text
    return text.startsWith('urn:') && !NOT_REFERENCES.has(key) ? (targets.get(text) ?? text) : text
  }

  /** `Patient/1` may refer to the entry whose `fullUrl` is that URL below the base. */
  function toUrl(reference: string): string | undefined {
    const local = parseReference(reference, baseUrl)
    return local && `${baseUrl}/${local.type}/${local.id}`
  }
}

/** Finds the targets of the conditional references in content. Each is a search within the caller's access. */
async function resolveConditionalReferences(
  context: Context,
  request: FhirRequest,
  content: ExactResource,
): Promise<Targets | Failure> {
  const targets = new Map<string, string>()
  for (const { text, element } of listReferenceElements(content)) {
    const conditional = targets.has(text) ? undefined : parseConditionalReference(text)
    if (!conditional || isLeftToBackend(context, request)) continue
    const { type, params } = conditional
    const found = await findMatch(context, request, type, params)
    if (!found) return failFor('no-match-of-reference', { type, element })
    if (isFailure(found)) return found
    targets.set(text, `${type}/${found.id}`)
  }
  return targets
}

/**
 * An upstream resolves the references of a caller who may see everything. For others, content is checked, and an unresolved
 * reference could be to anything.
 */
function isLeftToBackend({ session }: Context, { access }: FhirRequest): boolean {
  return !session.local && seesAll(access)
}

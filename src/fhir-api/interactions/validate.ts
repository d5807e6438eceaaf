import {
  type Fault,
  fail,
  isProblem,
  isRecord,
  type OutcomeIssue,
  readResourceBody,
  toErrorResponse,
} from '../../fhir/index.ts'
import type { Handler } from '../context.ts'

type Values = Readonly<Record<string, unknown>>

const MODES: ReadonlySet<string> = new Set(['create', 'update', 'delete'])
const BASE_PROFILE = 'http://hl7.org/fhir/StructureDefinition/'

/**
 * `$validate` checks a resource by the R4 definitions, without the backend: the text of an upstream's response cannot be
 * checked. The status is 200 for valid and for invalid resources (R4 resource-operation-validate).
 */
export const validateResource: Handler<'operation'> = async (_context, { interaction, body }) => {
  const { type = '', params } = interaction
  const given = isRecord(body) ? body : undefined
  const read = (name: string) => params.findLast(([it]) => it === name)?.[1] ?? readParameter(given, name)
  const mode = read('mode')
  if (mode !== undefined && !MODES.has(mode)) return UNKNOWN_MODE
  if (mode === 'delete' && findResource(given, type) === undefined) return respond([DELETABLE])
  const profile = read('profile')
  const resource = readResourceBody(findResource(given, type), type, { warns: true })
  if (isProblem(resource) && resource.problem !== 'invalid-resource') return resource
  const faults = isProblem(resource) ? resource.faults : []
  return respond(listIssues([...faults, ...checkProfiles(type, profile, findResource(given, type))]))
}

function readParameter(body: Values | undefined, name: string): string | undefined {
  const value = listParameters(body).find(it => it.name === name)
  const text = value?.valueCode ?? value?.valueUri ?? value?.valueCanonical ?? value?.valueString
  return typeof text === 'string' ? text : undefined
}

function listParameters(body: Values | undefined): readonly Values[] {
  return body?.resourceType === 'Parameters' && Array.isArray(body.parameter)
    ? body.parameter.filter(isRecord)
    : []
}

/** The resource itself, or the parameter of that name. Parameters without one are themselves validated. */
function findResource(body: Values | undefined, type: string): unknown {
  if (body?.resourceType !== 'Parameters') return body
  const { resource } = listParameters(body).find(it => it.name === 'resource') ?? {}
  return resource === undefined && type === 'Parameters' ? body : resource
}

/** A requested profile that is unknown is an error; one that the resource claims is a warning. */
function checkProfiles(type: string, requested: string | undefined, resource: unknown): readonly Fault[] {
  const text = 'The profile is unknown, so the resource was not checked against it'
  const { meta } = isRecord(resource) ? resource : {}
  const claimed = isRecord(meta) && Array.isArray(meta.profile) ? meta.profile : []
  const isUnknown = (it: unknown) => String(it).replace(/\|.*$/, '') !== `${BASE_PROFILE}${type}`
  return [
    ...(requested !== undefined && isUnknown(requested)
      ? [{ path: type, code: 'not-supported', text } as const]
      : []),
    ...claimed
      .filter(isUnknown)
      .slice(0, 1)
      .map(
        () => ({ path: `${type}.meta.profile`, code: 'not-supported', text, severity: 'warning' }) as const,
      ),
  ]
}

function listIssues(faults: readonly Fault[]): readonly OutcomeIssue[] {
  const issues =
    faults.length === 0 ? [] : toErrorResponse(fail({ problem: 'invalid-resource', faults })).outcome.issue
  return faults.some(it => it.severity === undefined) ? issues : [VALID, ...issues]
}

function respond(issue: readonly OutcomeIssue[]) {
  return { status: 200, body: JSON.stringify({ resourceType: 'OperationOutcome', issue }) }
}

const VALID = createInformation('The resource is valid')
const DELETABLE = createInformation('No rule of R4 prevents the deletion')

function createInformation(text: string): OutcomeIssue {
  return { severity: 'information', code: 'informational', details: { text }, diagnostics: text }
}

const UNKNOWN_MODE = fail({
  problem: 'bad-search',
  code: 'not-supported',
  text: 'Cannot use this mode: $validate supports create, update and delete',
})

import { isFailure, isRecord, toRecord } from '../../core/index.ts'
import {
  createFaultsOutcome,
  type EverythingType,
  failFor,
  findEverythingProblem,
  isResourceType,
  limits,
  type OutcomeIssue,
  type Params,
  parseLastN,
  type ResourceFault,
  readPostedParams,
  readRecommendedBody,
  runInTurns,
  selectLastN,
} from '../../fhir/index.ts'
import { findResource } from '../access/find-resource.ts'
import { buildUrl, bundleJson, entryJson } from '../bundle-json.ts'
import type { Handler } from '../context.ts'
import { sendFile } from '../export/file.ts'
import { startExport } from '../export/kick-off.ts'
import { showStatus } from '../export/status.ts'
import { resumePage } from '../paging.ts'
import { type FhirRequest, getPath, type Operation } from '../request.ts'
import type { Failure, FhirResponse } from '../response.ts'
import { respondWithPage, searchFor } from './search.ts'

/** `$everything` of a Patient or an Encounter: its resources and those they refer to, within the access. */
function createEverything(type: EverythingType): Handler<'operation'> {
  return async (context, original) => {
    const first = addPostedParams(original)
    if (isFailure(first)) return first
    const path = getPath(first.interaction)
    const resumed = resumePage(context, first, path)
    if (isFailure(resumed)) return resumed
    const { request, cursor } = resumed
    const { id = '', params } = request.interaction
    const found = await findResource(context, request, { permission: 'r', type, id })
    if (isFailure(found)) return found
    if (found.deleted) return failFor('gone', { type, id })
    const problem = findEverythingProblem(type, params)
    if (problem) return problem
    const types = findNamedTypes(params)
    if (isFailure(types)) return types
    const page = await context.session.everything(request, { type, id, types }, cursor)
    return isFailure(page) ? page : respondWithPage(context, request, path, page)
  }
}

/** Adds the parameters of the body to those of the URL. */
export function addPostedParams(request: FhirRequest<Operation>): FhirRequest<Operation> | Failure {
  const { interaction, body } = request
  const posted = readPostedParams(body)
  if (isFailure(posted)) return posted
  return { ...request, interaction: { ...interaction, params: [...interaction.params, ...posted] } }
}

/** The types that `_type` names. */
export function findNamedTypes(params: Params): readonly string[] | Failure {
  const types = params.filter(([name]) => name === '_type').flatMap(([, value]) => value.split(','))
  return types.every(isResourceType) ? [...new Set(types)] : failFor('types-malformed')
}

type Values = Readonly<Record<string, unknown>>

const MODES: ReadonlySet<string> = new Set(['create', 'update', 'delete'])
const BASE_PROFILE = 'http://hl7.org/fhir/StructureDefinition/'

/**
 * `$validate` checks a resource by the R4 definitions, without the backend: the text of an upstream's response cannot be
 * checked. The resource is in the body or, for a GET, the stored one with the id. The status is 200 for valid and for
 * invalid resources (R4 resource-operation-validate).
 */
const validateResource: Handler<'operation'> = async (context, request) => {
  if (request.interaction.posted) return validateContent(request, request.body)
  const { type = '', id = '' } = request.interaction
  const found = await findResource(context, request, { permission: 'r', type, id })
  if (isFailure(found)) return found
  if (found.deleted) return failFor('gone', { type, id })
  if (found.stream) return failFor('validated-too-large', { type, id })
  const resource = found.parse()
  if (isFailure(resource)) return resource
  const outcome = await validateContent(request, resource)
  return isFailure(outcome) ? outcome : { ...outcome, contents: [found] }
}

async function validateContent(
  { interaction, work }: FhirRequest<Operation>,
  content: unknown,
): Promise<FhirResponse | Failure> {
  const { type = '', params } = interaction
  const given = isRecord(content) ? content : undefined
  const read = (name: string) => params.findLast(([it]) => it === name)?.[1] ?? readParameter(given, name)
  const mode = read('mode')
  if (mode !== undefined && !MODES.has(mode)) return UNKNOWN_MODE
  if (mode === 'delete' && findValidated(given, type) === undefined) return respond([DELETABLE])
  const profile = read('profile')
  const resource = await runInTurns(work, readRecommendedBody(findValidated(given, type), type))
  if (isFailure(resource) && resource.reason !== 'invalid-resource') return resource
  const faults = isFailure(resource) ? resource.faults : []
  return respond(listIssues([...faults, ...checkProfiles(type, profile, findValidated(given, type))]))
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
function findValidated(body: Values | undefined, type: string): unknown {
  if (body?.resourceType !== 'Parameters') return body
  const { resource } = listParameters(body).find(it => it.name === 'resource') ?? {}
  return resource === undefined && type === 'Parameters' ? body : resource
}

/** A requested profile that is unknown is an error; one that the resource claims is a warning. */
function checkProfiles(
  type: string,
  requested: string | undefined,
  resource: unknown,
): readonly ResourceFault[] {
  const text = 'The profile is unknown, so the resource was not checked against it'
  const { meta } = toRecord(resource)
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

function listIssues(faults: readonly ResourceFault[]): readonly OutcomeIssue[] {
  const issues = faults.length === 0 ? [] : createFaultsOutcome(faults).issue
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

const UNKNOWN_MODE = failFor('validate-mode-unknown')

/**
 * `Observation/$lastn`: the newest Observations of each code, among those within the access. An upstream would choose among
 * all of its data, and the Observations that it leaves out would reveal others.
 */
const performLastN: Handler<'operation'> = async (context, original) => {
  const { baseUrl, session } = context
  const request = addPostedParams(original)
  if (isFailure(request)) return request
  const { interaction } = request
  const lastN = parseLastN(interaction.params)
  if (isFailure(lastN)) return lastN
  const found = await session.collect(searchFor(request, 'Observation', lastN.criteria), {
    matches: limits.LAST_N_OBSERVATIONS,
    characters: limits.LAST_N_CHARACTERS,
  })
  if (found === 'too-many') return TOO_MANY
  if (isFailure(found)) return found
  const parsed = found.map(entry => ({ entry, resource: entry.parse() }))
  const newest = selectLastN(parsed, ({ resource }) => resource, lastN.max, baseUrl)
  return {
    status: 200,
    body: bundleJson({
      type: 'searchset',
      total: newest.length,
      links: [{ relation: 'self', url: buildUrl(baseUrl + getPath(interaction), interaction.params) }],
      entries: newest.map(({ entry }) =>
        entryJson({
          fullUrl: `${baseUrl}/Observation/${entry.id}`,
          resource: entry.text,
          search: { mode: 'match' },
        }),
      ),
    }),
    contents: newest.map(({ entry }) => entry),
  }
}

const TOO_MANY = failFor('observations-too-many', {
  most: limits.LAST_N_OBSERVATIONS,
  characters: limits.LAST_N_CHARACTERS,
})

/** The operations that the API performs, by level and name. */
const OPERATIONS: Readonly<Record<string, Handler<'operation'>>> = {
  'Patient/id/$everything': createEverything('Patient'),
  'Encounter/id/$everything': createEverything('Encounter'),
  'Observation/$lastn': performLastN,
  'type/$validate': validateResource,
  'type/id/$validate': validateResource,
}

const EXPORTS: Readonly<Record<string, Handler<'operation'>>> = {
  $export: startExport,
  '$export-status': showStatus,
  '$export-file': sendFile,
}

/** A Bundle has no place for a status URL or for a stream, and only the status URL is deleted. */
function isAlone({ interaction: { name, cancels }, isEntry }: FhirRequest<Operation>): boolean {
  return !isEntry && (!cancels || name === '$export-status')
}

export const operation: Handler<'operation'> = async (context, request) => {
  const { name, type, id } = request.interaction
  const level = id === undefined ? '' : '/id'
  const exporting = context.exports && EXPORTS[name]
  if (exporting)
    return isAlone(request) ? exporting(context, request) : failFor('unsupported-operation', { name })
  const handler = OPERATIONS[`${type}${level}/${name}`] ?? (type && OPERATIONS[`type${level}/${name}`])
  if (handler) return handler(context, request)
  return context.session.operation?.(request) ?? failFor('unsupported-operation', { name })
}

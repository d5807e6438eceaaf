import { isFailure, isRecord } from '../../core/index.ts'
import { type FhirProblem, failFor, parseReference, type Resource, resourceTypes } from '../../fhir/index.ts'
import { type Access, hasCompartment } from '../../smart/index.ts'
import { findResource } from '../access/find-resource.ts'
import { buildUrl } from '../bundle-json.ts'
import type { Context, Handler } from '../context.ts'
import type { ExportLevel, ExportOrder, ExportOwner } from '../exports.ts'
import { type FhirRequest, getPath, type Operation } from '../request.ts'
import type { Failure } from '../response.ts'
import { isOfBlocks } from './blocks.ts'
import { formatStatusUrl } from './file-url.ts'
import { EXPORT_JOBS } from './limits.ts'
import { describeProblem, readParameters, type WantedExport } from './parameters.ts'
import { findRelay, startRelayed } from './relay.ts'

/** `$export` of the system, of all patients and of a Group (Bulk Data Access 3.0.0, Kick-off Request). */
export const startExport: Handler<'operation'> = async (context, request) => {
  const { baseUrl, exports, session, clock } = context
  const owner = findOwner(request)
  if (!exports || !owner) return failFor('export-needs-service')
  const now = clock()
  if ((await exports.jobs.count(owner, now)) >= EXPORT_JOBS)
    return failFor('export-jobs-too-many', { most: EXPORT_JOBS })
  const { interaction } = request
  const level = interaction.type === undefined ? 'system' : interaction.type === 'Group' ? 'group' : 'patient'
  const relay = findRelay(context, request)
  if (relay) {
    const relayed = await startRelayed(context, exports, relay, request, { level, owner })
    return isFailure(relayed) ? relayed : accept(baseUrl, relayed)
  }
  const members = level === 'group' ? await findMembers(context, request) : undefined
  if (isFailure(members)) return members
  const wanted = readParameters(request, { level, baseUrl })
  if (isFailure(wanted)) return wanted
  const selected = await selectPatients(context, request, wanted, members)
  if (isFailure(selected)) return selected
  const chosen = chooseTypes(context, request, level, selected)
  if (isFailure(chosen)) return chosen
  const { patients, ...rest } = chosen
  const isProvenanceAdded = wanted.provenance && wanted.types && !wanted.types.includes('Provenance')
  const deletions = await noteDeletions(context, rest)
  const id = await exports.jobs.add(
    {
      ...rest,
      ...deletions,
      level,
      // The parameters of a POST are in its body.
      url: buildUrl(baseUrl + getPath(interaction), interaction.params),
      moment: await session.rows.now(),
      ...(patients && { patients }),
      ...(isProvenanceAdded && { isProvenanceAdded }),
    },
    owner,
    now + exports.lifetimeMs,
  )
  return accept(baseUrl, id)
}

function accept(baseUrl: string, id: string) {
  return { status: 202, headers: { 'content-location': formatStatusUrl(baseUrl, id) } }
}

/** Deletions matter to a client that has exported before. */
async function noteDeletions(
  { session: { rows } }: Context,
  { since, types, notes }: Pick<ExportOrder, 'since' | 'types' | 'notes'>,
): Promise<Pick<ExportOrder, 'hasDeletions' | 'notes'>> {
  const [type] = types
  if (since === undefined || type === undefined) return { notes }
  if (await rows.knowsDeletions(type, since)) return { notes, hasDeletions: true }
  return { notes: [...notes, NO_DELETIONS] }
}

const NO_DELETIONS =
  'The resources that were deleted are not listed: the FHIR server behind the gateway shows no history of a type'

/** The client of the token. Others cannot use its exports. */
export function findOwner({ authenticated: { grant } }: FhirRequest): ExportOwner | undefined {
  const client = grant?.clientId ?? grant?.subject
  return client === undefined ? undefined : { issuer: grant?.issuer ?? '', client }
}

/** The active patients of the Group, if the client may read it. */
async function findMembers(
  context: Context,
  request: FhirRequest<Operation>,
): Promise<readonly string[] | Failure> {
  const { id = '' } = request.interaction
  const found = await findResource(context, request, { permission: 'r', type: 'Group', id })
  const isHidden = isFailure(found) && (found.reason === 'outside-access' || found.reason === 'absent')
  if (isHidden || (!isFailure(found) && found.deleted)) return failFor('export-group-unknown', { id })
  if (isFailure(found)) return found
  const group = found.parse()
  return isFailure(group) ? group : listMembers(group, context.baseUrl)
}

export function listMembers({ member }: Resource, baseUrl: string): readonly string[] {
  const members = Array.isArray(member) ? member.filter(isRecord) : []
  const patients = members
    .filter(({ inactive }) => inactive !== true)
    .flatMap(({ entity }) => {
      const text = isRecord(entity) ? entity.reference : undefined
      const reference = typeof text === 'string' ? parseReference(text, baseUrl) : undefined
      return reference?.type === 'Patient' ? [reference.id] : []
    })
  return [...new Set(patients)]
}

/** The patients that are exported: those of the Group, of which a request may name some. */
async function selectPatients(
  context: Context,
  request: FhirRequest<Operation>,
  wanted: WantedExport,
  members: readonly string[] | undefined,
): Promise<WantedExport | Failure> {
  if (!wanted.patients) return { ...wanted, patients: members }
  const ofGroup = members && new Set(members)
  const known: string[] = []
  const notes = [...wanted.notes]
  for (const id of wanted.patients) {
    const isKnown = ofGroup ? ofGroup.has(id) : await isPatient(context, request, id)
    const problem = isKnown ? undefined : failFor('export-patient-unknown', { patient: `Patient/${id}` })
    if (!problem) known.push(id)
    else if (request.preferences.lenient) notes.push(describeProblem(problem))
    else return problem
  }
  return { ...wanted, patients: known, notes }
}

async function isPatient(context: Context, request: FhirRequest<Operation>, id: string): Promise<boolean> {
  const found = await findResource(context, request, { permission: 'r', type: 'Patient', id })
  return !isFailure(found) && !found.deleted
}

/** Types outside the Patient compartment that help to understand its resources. */
const SUPPORTING: ReadonlySet<string> = new Set([
  'HealthcareService',
  'Location',
  'Medication',
  'Organization',
  'Practitioner',
  'PractitionerRole',
])

/** A Binary is the attachment of its DocumentReference; AuditEvents are in the audit trail. A Group lists other patients. */
export function isExported(
  { excludedTypes }: Pick<Context, 'excludedTypes'>,
  type: string,
  level: ExportLevel,
): boolean {
  if (type === 'AuditEvent' || type === 'Binary' || excludedTypes?.has(type)) return false
  return level === 'system' || (hasCompartment(type) && type !== 'Group') || SUPPORTING.has(type)
}

/** Whether the token may read and search some resources of a type. */
function covers(access: Access, type: string): boolean {
  return access.filterFor(type, 'r').length > 0 && access.filterFor(type, 's').length > 0
}

/** The types that the token covers, or those of `_type`, which it must cover. */
function chooseTypes(
  context: Context,
  { access, preferences }: FhirRequest,
  level: ExportLevel,
  wanted: WantedExport,
): (WantedExport & { readonly types: readonly string[] }) | FhirProblem {
  const notes = [...wanted.notes]
  const types: string[] = []
  const named = [...(wanted.types ?? []), ...(wanted.provenance ? ['Provenance'] : [])]
  for (const type of new Set(named)) {
    const problem = findTypeProblem(context, access, level, type, wanted)
    if (!problem) types.push(type)
    else if (preferences.lenient) notes.push(describeProblem(problem))
    else return problem
  }
  const possible = wanted.types ? types : resourceTypes
  const chosen = possible.filter(type => !findTypeProblem(context, access, level, type, wanted))
  // The patients are what the others are organized by.
  if (wanted.isByPatient && !covers(access, 'Patient'))
    return failFor('export-type-not-covered', { type: 'Patient' })
  if (chosen.length === 0 && !preferences.lenient) return failFor('export-of-nothing')
  return { ...wanted, types: chosen, notes }
}

function findTypeProblem(
  context: Context,
  access: Access,
  level: ExportLevel,
  type: string,
  { isByPatient }: WantedExport,
): FhirProblem | undefined {
  if (!isExported(context, type, level)) return failFor('export-type-unsupported', { type })
  if (isByPatient && !isOfBlocks(type)) return failFor('export-type-unorganized', { type })
  return covers(access, type) ? undefined : failFor('export-type-not-covered', { type })
}

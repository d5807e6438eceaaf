import {
  type ExactResource,
  fail,
  findNamedBinaries,
  isRecord,
  limits,
  parseReference,
  type Resource,
  toPlain,
} from '../../fhir/index.ts'
import type { PanelMembership } from '../../smart/index.ts'
import type { Context } from '../context.ts'
import { type Failure, isFailure } from '../failure.ts'
import type { FhirRequest } from '../request.ts'
import { createAccessCheck, findWrittenPatients } from './access-check.ts'
import { findThroughDocument } from './binaries.ts'
import { hidesSearch } from './conditional-reference.ts'
import { lookUp } from './find-resource.ts'

/** What is written in one commit, so that its parts may rely on each other. */
export interface WrittenTogether {
  /** `Type/id` of everything that is created or updated. */
  readonly identities: ReadonlySet<string>
  /** The Patients that are created, by id. */
  readonly newPatients: ReadonlyMap<string, Resource>
}

/** Why new content must not be written, if so. */
export async function checkContent(
  context: Context,
  request: FhirRequest,
  permission: 'c' | 'u',
  content: ExactResource,
  { identities, newPatients }: WrittenTogether,
): Promise<Failure | undefined> {
  const { baseUrl, excludedTypes, session } = context
  const { access } = request
  const resource = toPlain(content)
  if (hidesSearch(resource, access, baseUrl)) return OUTSIDE
  if (access.filterFor(resource.resourceType, permission) !== 'everything') {
    const check = await createAccessCheck({
      ...{ access, baseUrl, excludedTypes, resources: [resource], findPatients: findWrittenPatients },
      async panelMembers(panels, patients) {
        const membership = await session.panelMembers(panels, patients)
        return isFailure(membership) ? membership : includeNewPatients(membership, newPatients, baseUrl)
      },
    })
    if (isFailure(check)) return check
    if (!check.allowsWrite(permission, resource)) return OUTSIDE
  }
  return checkDocument(context, request, resource, identities)
}

const OUTSIDE = fail({ problem: 'out-of-reach' })

/**
 * Why a DocumentReference must not be written, if so: it names a Binary that the caller may not touch, and would let its
 * readers, the caller among them, read that Binary. An absent Binary is refused in the same way.
 */
async function checkDocument(
  context: Context,
  request: FhirRequest,
  resource: Resource,
  identities: ReadonlySet<string>,
): Promise<Failure | undefined> {
  if (resource.resourceType !== 'DocumentReference') return undefined
  if (request.access.filterFor('Binary', 'r') === 'everything') return undefined
  const named = findNamedBinaries(context.session.toPublic?.(resource) ?? resource, context.baseUrl)
  if (named.size > limits.BINARIES_OF_DOCUMENT)
    return fail({
      problem: 'too-costly',
      text: `Cannot write DocumentReference: it names more than ${limits.BINARIES_OF_DOCUMENT} Binaries`,
    })
  for (const id of named)
    if (!identities.has(`Binary/${id}`) && !(await mayTouchBinary(context, request, id))) return OUTSIDE
  return undefined
}

/** A caller who may write a Binary knows its content without reading it. */
async function mayTouchBinary(context: Context, request: FhirRequest, id: string): Promise<boolean> {
  for (const permission of ['r', 'c', 'u'] as const) {
    if (request.access.filterFor('Binary', permission).length === 0) continue
    const found = await lookUp(context, request, permission, 'Binary', id)
    if (typeof found === 'object' && !isFailure(found) && !found.deleted) return true
  }
  return (await findThroughDocument(context, request, id)) !== undefined
}

/**
 * Panel membership as it is after a transaction that creates these Patients: their content alone says which
 * organization manages them.
 */
function includeNewPatients(
  membership: PanelMembership,
  newPatients: ReadonlyMap<string, Resource>,
  baseUrl: string,
): PanelMembership {
  if (newPatients.size === 0) return membership
  return {
    includes(panel, patient) {
      const organization = findOrganization(newPatients.get(patient), baseUrl)
      return (
        (organization !== undefined && panel.organizations.includes(organization)) ||
        membership.includes(panel, patient)
      )
    },
  }
}

function findOrganization(patient: Resource | undefined, baseUrl: string): string | undefined {
  const managing = patient?.managingOrganization
  const text = isRecord(managing) ? managing.reference : undefined
  const reference = typeof text === 'string' ? parseReference(text, baseUrl) : undefined
  return reference?.type === 'Organization' ? reference.id : undefined
}

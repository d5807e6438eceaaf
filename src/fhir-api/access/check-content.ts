import { isFailure, isRecord } from '../../core/index.ts'
import { type ExactResource, failFor, parseReference, type Resource, toPlain } from '../../fhir/index.ts'
import { type PanelMembership, seesAll } from '../../smart/index.ts'
import type { Context } from '../context.ts'
import type { FhirRequest } from '../request.ts'
import type { Failure } from '../response.ts'
import type { StoredVersion } from '../stored-version.ts'
import { createAccessCheck, findWrittenPatients } from './access-check.ts'
import { checkNamedBinaries } from './binaries.ts'
import { checkReferences, findHiddenSearch } from './check-references.ts'

/** The resources of one commit: their checks may rely on each other. */
export interface WrittenTogether {
  /** `Type/id` of everything that is created or updated. */
  readonly identities: ReadonlySet<string>
  /** The Patients that are created, by id. */
  readonly newPatients: ReadonlyMap<string, Resource>
  /** `Type/id` of resources that are known to be within the grant. */
  readonly known: Set<string>
}

/** Fails if new content must not be written. */
export async function checkNewContent(
  context: Context,
  request: FhirRequest,
  permission: 'c' | 'u',
  content: ExactResource,
  before: StoredVersion | undefined,
  { identities, newPatients, known }: WrittenTogether,
): Promise<Failure | undefined> {
  const { baseUrl, excludedTypes, session } = context
  const { access, work } = request
  const plain = toPlain(content)
  // Another base URL of the server leads to its resources too.
  const resource = seesAll(access) ? plain : (session.toPublic?.(plain) ?? plain)
  const filter = access.filterFor(resource.resourceType, permission)
  if (filter !== 'everything') {
    const check = await createAccessCheck({
      access,
      baseUrl,
      excludedTypes,
      resources: [resource],
      findPatients: findWrittenPatients,
      async panelMembers(panels, patients) {
        const membership = await session.panelMembers(panels, patients)
        return isFailure(membership) ? membership : includeNewPatients(membership, newPatients, baseUrl)
      },
    })
    if (isFailure(check)) return check
    if (!check.allowsWrite(permission, resource)) return OUTSIDE
  }
  const element = findHiddenSearch(resource, access, baseUrl, work)
  if (element !== undefined) return failFor('hidden-target', { element })
  return (
    (await checkNamedBinaries(context, request, resource, identities)) ??
    checkReferences(context, request, { filter, resource, before: parseContent(before), known })
  )
}

function parseContent(version: StoredVersion | undefined): Resource | undefined {
  const content = version && !version.deleted ? version.parse() : undefined
  return content && !isFailure(content) ? content : undefined
}

const OUTSIDE = failFor('outside-access')

/**
 * Panel membership after a transaction that creates these Patients: their content alone names the organization that
 * manages them.
 */
function includeNewPatients(
  membership: PanelMembership,
  newPatients: ReadonlyMap<string, Resource>,
  baseUrl: string,
): PanelMembership {
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

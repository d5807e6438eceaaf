import { type Interaction, isRecord, isResource, type Resource } from '../../fhir/index.ts'
import { type Access, type AccessFilter, satisfies } from '../../smart/index.ts'

/** What the response to an interaction may contain. */
export interface ResponseRule {
  readonly filter: (type: string) => AccessFilter
  /** Whether it may be a Bundle of resources. */
  readonly many: boolean
  /** Whether it is the response to a write, which is done even if its content may not be shown. */
  readonly written: boolean
}

/** Chooses the permission that the resources in a response need. The response to a write needs `r`. */
export function chooseResponseRule(interaction: Interaction, access: Access): ResponseRule {
  const filterBy = (permission: 'r' | 's') => (type: string) => access.filterFor(type, permission)
  switch (interaction.kind) {
    case 'capabilities':
    case 'smart-configuration':
    case 'read':
    case 'vread':
      return { filter: filterBy('r'), many: false, written: false }
    case 'history-instance':
      return { filter: filterBy('r'), many: true, written: false }
    case 'history-type':
    case 'history-system':
    case 'search-type':
    case 'search-system':
    case 'search-compartment':
    case 'operation':
    case 'bundle':
      return { filter: filterBy('s'), many: true, written: false }
    case 'create':
    case 'update':
    case 'update-conditional':
    case 'patch':
    case 'patch-conditional':
    case 'delete':
    case 'delete-conditional':
      return { filter: filterBy('r'), many: false, written: true }
  }
}

/** Whether every resource in a response may be released. A body that cannot be read may not. */
export function mayRelease(body: unknown, rule: ResponseRule, baseUrl: string): boolean {
  if (!isResource(body)) return false
  if (!rule.many || body.resourceType !== 'Bundle') return mayReleaseResource(body, rule, baseUrl)
  const entries: unknown = body.entry ?? []
  if (!Array.isArray(entries)) return false
  return entries.every(entry => isRecord(entry) && mayReleaseEntry(entry.resource, rule, baseUrl))
}

// The entry of a deletion in a history has no resource.
function mayReleaseEntry(resource: unknown, rule: ResponseRule, baseUrl: string): boolean {
  return resource === undefined || (isResource(resource) && mayReleaseResource(resource, rule, baseUrl))
}

function mayReleaseResource(resource: Resource, { filter }: ResponseRule, baseUrl: string): boolean {
  return (
    resource.resourceType === 'OperationOutcome' ||
    satisfies(resource, filter(resource.resourceType), baseUrl)
  )
}

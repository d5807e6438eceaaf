import { type Interaction, isResource, type Resource } from '../../fhir/index.ts'
import { type Access, type AccessFilter, satisfies } from '../../smart/index.ts'
import { isJsonObject } from '../decision/json.ts'

/** What the answer to an interaction may show. */
export interface Shows {
  readonly filter: (type: string) => AccessFilter
  /** One resource, or a Bundle of them. */
  readonly many: boolean
  /** It answers a write, which is done whatever may be shown of it. */
  readonly written: boolean
}

/** By which permission an interaction shows resources. The answer to a write shows what may be read. */
export function showsOf(interaction: Interaction, access: Access): Shows {
  const by = (permission: 'r' | 's') => (type: string) => access.filterFor(type, permission)
  switch (interaction.kind) {
    case 'capabilities':
    case 'smart-configuration':
    case 'read':
    case 'vread':
      return { filter: by('r'), many: false, written: false }
    case 'history-instance':
      return { filter: by('r'), many: true, written: false }
    case 'history-type':
    case 'history-system':
    case 'search-type':
    case 'search-system':
    case 'search-compartment':
    case 'operation':
    case 'bundle':
      return { filter: by('s'), many: true, written: false }
    case 'create':
    case 'update':
    case 'update-conditional':
    case 'patch':
    case 'patch-conditional':
    case 'delete':
    case 'delete-conditional':
      return { filter: by('r'), many: false, written: true }
  }
}

/** Whether every resource in an answer may be shown. What cannot be told may not. */
export function isShown(body: unknown, shows: Shows, baseUrl: string): boolean {
  if (!isResource(body)) return false
  if (!shows.many || body.resourceType !== 'Bundle') return isOneShown(body, shows, baseUrl)
  const entries: unknown = body.entry ?? []
  if (!Array.isArray(entries)) return false
  return entries.every(entry => isJsonObject(entry) && isEntryShown(entry.resource, shows, baseUrl))
}

// A deletion in a history has no resource.
function isEntryShown(resource: unknown, shows: Shows, baseUrl: string): boolean {
  return resource === undefined || (isResource(resource) && isOneShown(resource, shows, baseUrl))
}

function isOneShown(resource: Resource, { filter }: Shows, baseUrl: string): boolean {
  return (
    resource.resourceType === 'OperationOutcome' ||
    satisfies(resource, filter(resource.resourceType), baseUrl)
  )
}

import type { Resource } from '../../../fhir/index.ts'
import {
  type AccessCheck,
  checkStored,
  type Failure,
  type FhirRequest,
  type ResourceLookup,
} from '../../../fhir-api/index.ts'
import type { Access, Permission } from '../../../smart/index.ts'
import type { GatewayContext } from '../context.ts'
import { read, readLastWithin } from './read-within.ts'

/** AuditEvents are served from the audit trail, and never taken from an upstream. */
export const EXCLUDED_TYPES: ReadonlySet<string> = new Set(['AuditEvent'])

export function hasAccess(access: Access, type: string, permission: Permission): boolean {
  return access.filterFor(type, permission).length > 0 && !EXCLUDED_TYPES.has(type)
}

/**
 * The access check of content from the upstream: fhir-api/access/access-check.ts decides. The entries of a search that it
 * refuses are dropped in search/check-page.ts.
 */
export function createContentCheck(
  context: GatewayContext,
  request: FhirRequest,
  resources: readonly Resource[],
  standIn?: string,
): AccessCheck | Promise<AccessCheck | Failure> {
  return checkStored(createLookup(context, request), request, resources, standIn)
}

/** The context of the API's lookup, for resources that the backend itself looks up. */
export function createLookup(context: GatewayContext, request: FhirRequest): ResourceLookup {
  return {
    baseUrl: context.baseUrl,
    accessCache: context.accessCache,
    excludedTypes: EXCLUDED_TYPES,
    session: {
      read: (type, id, version, filter) => read(context, request, type, id, version, filter),
      readLast: (type, id, filter) => readLastWithin(context, request, type, id, filter),
      noteUnseen: type => context.concealment.note(type),
      panelMembers: (panels, patients) => context.findMembers(context, request, panels, patients),
    },
  }
}

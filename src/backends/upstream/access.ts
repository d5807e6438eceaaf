import type { Resource } from '../../fhir/index.ts'
import { type AccessCheck, createAccessCheck, type LookupContext } from '../../fhir-api/index.ts'
import type { Call, Context } from './context.ts'
import { EXCLUDED_TYPES } from './excluded-types.ts'
import type { Problem } from './problem.ts'
import { readLast, readVersion } from './read-version.ts'

/** The access check of content from the upstream. */
export function checkContent(
  context: Context,
  call: Call,
  resources: readonly Resource[],
  standIn?: string,
): AccessCheck | Promise<AccessCheck | Problem> {
  return createAccessCheck({
    ...{ access: call.access, baseUrl: context.baseUrl, excludedTypes: EXCLUDED_TYPES, resources, standIn },
    panelMembers: (panels, patients) => context.findMembers(context, call, panels, patients),
  })
}

/** What the API's lookup needs, for resources that the backend itself looks up. */
export function createLookup(context: Context, call: Call): LookupContext {
  return {
    baseUrl: context.baseUrl,
    accessCache: context.accessCache,
    excludedTypes: EXCLUDED_TYPES,
    session: {
      read: (type, id, version) => readVersion(context, call, type, id, version),
      readLast: (type, id) => readLast(context, call, type, id),
      panelMembers: (panels, patients) => context.findMembers(context, call, panels, patients),
    },
  }
}

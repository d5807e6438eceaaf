import type { LookupContext } from '../../fhir-api/index.ts'
import type { Call, Context } from './call.ts'
import { lastVersion } from './judge/find.ts'
import { KEPT_ELSEWHERE } from './judge/kept-elsewhere.ts'
import { readVersion } from './read-version.ts'

/** What the API's lookup needs, for resources that the backend itself looks up. */
export function createLookup(context: Context, call: Call): LookupContext {
  return {
    baseUrl: context.baseUrl,
    accessCache: context.accessCache,
    excludedTypes: KEPT_ELSEWHERE,
    session: {
      read: (type, id, version) => readVersion(context, call, type, id, version),
      readLast: (type, id) => lastVersion(context, call, type, id),
      panelMembers: (panels, patients) => context.rosterOf(context, call, panels, patients),
    },
  }
}

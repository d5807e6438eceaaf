import type { Resource } from '../../../fhir/index.ts'
import { type AccessCheck, createAccessCheck } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { KEPT_ELSEWHERE } from './kept-elsewhere.ts'

/** The access check of content from the upstream. */
export function checkContent(
  context: Context,
  call: Call,
  resources: readonly Resource[],
  standIn?: string,
): AccessCheck | Promise<AccessCheck | Problem> {
  return createAccessCheck({
    ...{ access: call.access, baseUrl: context.baseUrl, excludedTypes: KEPT_ELSEWHERE, resources, standIn },
    panelMembers: (panels, patients) => context.rosterOf(context, call, panels, patients),
  })
}

import type { Resource } from '../../../fhir/index.ts'
import { type AccessCheck, createAccessCheck, findWrittenPatients } from '../../../fhir-api/index.ts'
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

/** The same of new content. */
export function checkNewContent(
  context: Context,
  call: Call,
  resource: Resource,
): AccessCheck | Promise<AccessCheck | Problem> {
  return createAccessCheck({
    ...{ access: call.access, baseUrl: context.baseUrl, excludedTypes: KEPT_ELSEWHERE },
    ...{ resources: [resource], findPatients: findWrittenPatients },
    panelMembers: (panels, patients) => context.rosterOf(context, call, panels, patients),
  })
}

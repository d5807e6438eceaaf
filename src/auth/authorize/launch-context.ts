import type { ExtraContext } from '../launch/extra-context.ts'
import type { Launch } from '../launch/launch-token.ts'
import type { PickedContext } from './request.ts'
import { type AvailableContext, NO_CONTEXT } from './scope-terms.ts'

/** The context of an EHR launch, or what the user picked in a standalone launch. */
export interface LaunchContext {
  readonly patientId: string
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean
  readonly fromEhr: boolean
  readonly extraContext: ExtraContext
}

export function resolveLaunchContext(
  launch: Launch | undefined,
  picked: PickedContext | undefined,
): LaunchContext | undefined {
  if (launch) return { ...launch, fromEhr: true }
  if (!picked) return undefined
  const { patientId, encounterId } = picked
  // Such an app runs outside an EHR, so it must show the patient banner itself.
  return {
    patientId,
    encounterId,
    needPatientBanner: true,
    fromEhr: false,
    extraContext: {},
  }
}

export function describeAvailableContext(launchContext: LaunchContext | undefined): AvailableContext {
  if (!launchContext) return NO_CONTEXT
  return {
    launched: launchContext.fromEhr,
    hasPatient: true,
    hasEncounter: launchContext.encounterId !== undefined,
  }
}

import type { FurtherContext } from '../launch/further-context.ts'
import type { Launch } from '../launch/launch-token.ts'
import type { PickedContext } from './request.ts'
import { NOTHING_OPEN, type Opening } from './scope-terms.ts'

/** What an app is opened for: what the launch says, or what was picked in a standalone launch. */
export interface OpenedFor {
  readonly patientId: string
  readonly encounterId: string | undefined
  readonly needPatientBanner: boolean
  readonly fromEhr: boolean
  readonly further: FurtherContext
}

export function openedFor(
  launch: Launch | undefined,
  picked: PickedContext | undefined,
): OpenedFor | undefined {
  if (launch) return { ...launch, fromEhr: true }
  if (!picked) return undefined
  const { patientId, encounterId } = picked
  // No EHR is around such an app: if it does not show who the patient is, nobody does.
  return {
    patientId,
    encounterId,
    needPatientBanner: true,
    fromEhr: false,
    further: {},
  }
}

export function openingOf(opened: OpenedFor | undefined): Opening {
  if (!opened) return NOTHING_OPEN
  return {
    launched: opened.fromEhr,
    hasPatient: true,
    hasEncounter: opened.encounterId !== undefined,
  }
}

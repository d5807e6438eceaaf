import type { AuthSettings } from '../context.ts'
import { stylePath } from '../style/smart-style.ts'
import type { Grant } from './grant.ts'

/** The launch context in a token response or an introspection response (SMART 2.2, launch context). */
export function buildContextMembers({ issuerUrl }: Pick<AuthSettings, 'issuerUrl'>, grant: Grant) {
  const { patientId, encounterId, needPatientBanner, fromEhr, extraContext } = grant
  return {
    ...(patientId === undefined ? {} : { patient: patientId }),
    ...(encounterId === undefined ? {} : { encounter: encounterId }),
    ...(needPatientBanner === undefined ? {} : { need_patient_banner: needPatientBanner }),
    ...extraContext,
    ...(fromEhr ? { smart_style_url: `${issuerUrl}${stylePath}` } : {}),
  }
}

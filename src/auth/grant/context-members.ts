import type { AuthSettings } from '../context.ts'
import { stylePath } from '../style/smart-style.ts'
import type { Grant } from './grant.ts'

/** The launch context as apps read it, beside a token or in an introspection (SMART 2.2, launch context). */
export function contextMembers({ issuerUrl }: Pick<AuthSettings, 'issuerUrl'>, grant: Grant) {
  const { patientId, encounterId, needPatientBanner, fromEhr, further } = grant
  return {
    ...(patientId === undefined ? {} : { patient: patientId }),
    ...(encounterId === undefined ? {} : { encounter: encounterId }),
    ...(needPatientBanner === undefined ? {} : { need_patient_banner: needPatientBanner }),
    ...further,
    ...(fromEhr ? { smart_style_url: `${issuerUrl}${stylePath}` } : {}),
  }
}

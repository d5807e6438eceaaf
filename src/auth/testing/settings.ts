import { readSettings } from '../../config/index.ts'
import type { AuthSettings } from '../base/settings.ts'

const defaults = readSettings({}, import.meta.dirname)

/** The default settings on loopback, without the lab. */
export const testSettings: AuthSettings = {
  ...defaults,
  lab: false,
  developerTools: false,
  app: {
    clientId: defaults.app.clientId,
    // Most tests use a public client.
    authMethod: 'none',
    scope:
      'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs',
  },
}

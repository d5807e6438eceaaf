import { readSettings, type Settings } from '../../config/index.ts'

const defaults = readSettings({}, import.meta.dirname)

/** The default settings on loopback, without developer tools. */
export const testSettings: Settings = {
  ...defaults,
  lab: false,
  developerTools: false,
  app: {
    ...defaults.app,
    // Most tests use a public client.
    authMethod: 'none',
    scope:
      'launch openid fhirUser online_access patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs',
  },
}

import type { Client } from '../client/client.ts'
import type { AuthSettings } from '../context.ts'
import type { ScopeTerms } from '../grant/grant-scope.ts'
import type { Launch } from '../launch/launch-token.ts'

/** What may be granted to a client, with the patient and encounter of the launch if there is one. */
export function scopeTerms(settings: AuthSettings, client: Client, launch: Launch | undefined): ScopeTerms {
  return {
    // Whoever registered a launch address is meant to be launched.
    allowed: client.launchUrl === undefined ? client.scope : `${client.scope} launch`,
    launched: launch !== undefined,
    hasPatient: launch !== undefined,
    hasEncounter: launch?.encounterId !== undefined,
    searchLetter: settings.fhir.searchLetter,
    contexts: settings.fhir.scopeContexts,
  }
}

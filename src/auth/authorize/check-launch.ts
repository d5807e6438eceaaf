import { sha256 } from '../../store/index.ts'
import type { AuthContext } from '../context.ts'
import { hasScope } from '../grant/grant.ts'
import { findLaunch, launchRefused } from '../launch/launch-token.ts'
import { Refusal } from '../refusal.ts'
import type { Asked, Finding } from './request.ts'
import { askedScope } from './scope-terms.ts'

/**
 * The launch token must be known, unused, in time, and made for this client and FHIR base (contract 4). That it is for
 * this clinician is checked once they are logged in; it is used up with the code that it buys.
 */
export async function checkLaunch(
  { client, parameters }: Asked,
  { store, clock, settings }: AuthContext,
): Promise<Finding | Refusal> {
  const token = parameters.get('launch')
  if (token === undefined) return {}
  if (!hasScope(askedScope({ client, parameters }), 'launch'))
    return new Refusal('invalid_request', 'The parameter launch needs the scope launch.')
  const launchHash = sha256(token)
  const launch = await findLaunch(store.db, launchHash)
  if (!launch) return launchRefused('unknown')
  if (launch.clientId !== client.id || launch.fhirBaseUrl !== settings.fhirBaseUrl)
    return launchRefused('foreign')
  if (launch.usedAt !== undefined) return launchRefused('used')
  return launch.expiresAt > clock() ? { launchHash, launchId: launch.id } : launchRefused('expired')
}

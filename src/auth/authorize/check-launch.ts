import { sha256 } from '../../store/index.ts'
import type { AuthContext } from '../context.ts'
import { hasScope } from '../grant/grant.ts'
import { findLaunch, refuseLaunch } from '../launch/launch-token.ts'
import { Refusal } from '../refusal.ts'
import type { Finding, RequestInput } from './request.ts'
import { readRequestedScope } from './scope-terms.ts'

/**
 * The launch token must be known, unused, unexpired, and issued for this client and FHIR base. Whether it is for this
 * clinician is checked after the login. It is used up when the code is issued.
 */
export async function checkLaunch(
  { client, parameters }: RequestInput,
  { store, clock, settings }: AuthContext,
): Promise<Finding | Refusal> {
  const token = parameters.get('launch')
  if (token === undefined) return {}
  if (!hasScope(readRequestedScope({ client, parameters }), 'launch'))
    return new Refusal('invalid_request', 'The parameter launch needs the scope launch.')
  const launchHash = sha256(token)
  const launch = await findLaunch(store.db, launchHash)
  if (!launch) return refuseLaunch('unknown')
  if (launch.clientId !== client.id || launch.fhirBaseUrl !== settings.fhirBaseUrl)
    return refuseLaunch('foreign')
  if (launch.usedAt !== undefined) return refuseLaunch('used')
  return launch.expiresAt > clock() ? { launchHash, launchId: launch.id } : refuseLaunch('expired')
}

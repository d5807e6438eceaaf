import type { AuthContext } from '../context.ts'
import { grantScope } from '../grant/grant-scope.ts'
import { findLaunch } from '../launch/launch-token.ts'
import { Refusal } from '../refusal.ts'
import type { Asked, Finding } from './request.ts'
import { scopeTerms } from './scope-terms.ts'

/** Something of what is asked must be grantable (RFC 6749, 3.3); what exactly is decided when the code is issued. */
export async function checkScope(
  { client, parameters }: Asked,
  context: AuthContext,
  { launchHash }: Finding,
): Promise<Finding | Refusal> {
  const asked = parameters.get('scope')
  if (asked === undefined) return new Refusal('invalid_scope', 'The parameter scope is missing.')
  const launch = launchHash === undefined ? undefined : await findLaunch(context.store.db, launchHash)
  const granted = grantScope(asked, scopeTerms(context.settings, client, launch))
  return granted === ''
    ? new Refusal('invalid_scope', 'None of the scopes can be granted to this app in this launch.')
    : {}
}

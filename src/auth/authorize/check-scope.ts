import type { AuthContext } from '../context.ts'
import { grantScope } from '../grant/grant-scope.ts'
import { checkAskedScope, checkGrantedScope } from '../grant/scope-refusals.ts'
import type { Refusal } from '../refusal.ts'
import type { Asked, Finding } from './request.ts'
import { askedScope, openingAhead, scopeTerms } from './scope-terms.ts'

/** Something of what is asked must be grantable (RFC 6749, 3.3); what exactly is decided when the code is issued. */
export function checkScope({ client, parameters }: Asked, { settings }: AuthContext): Finding | Refusal {
  const scope = askedScope({ client, parameters })
  const refused = checkAskedScope(scope)
  if (refused) return refused
  const launched = parameters.get('launch') !== undefined
  const ahead = openingAhead(settings, client, { scope, launched })
  return checkGrantedScope(grantScope(scope, scopeTerms(settings, client, ahead))) ?? {}
}

import type { AuthContext } from '../context.ts'
import { grantScope } from '../grant/grant-scope.ts'
import { checkGrantedScope, checkRequestedScope } from '../grant/scope-refusals.ts'
import type { Refusal } from '../refusal.ts'
import type { Finding, RequestInput } from './request.ts'
import { makeScopeTerms, predictContext, readRequestedScope } from './scope-terms.ts'

/** At least one scope must be grantable (RFC 6749, 3.3). Which ones are granted is decided when the code is issued. */
export function checkScope(
  { client, parameters }: RequestInput,
  { settings }: AuthContext,
): Finding | Refusal {
  const scope = readRequestedScope({ client, parameters })
  const refused = checkRequestedScope(scope)
  if (refused) return refused
  const launched = parameters.get('launch') !== undefined
  const available = predictContext(settings, client, { scope, launched })
  return checkGrantedScope(grantScope(scope, makeScopeTerms(settings, client, available))) ?? {}
}

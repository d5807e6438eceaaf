import type { FastifyReply } from 'fastify'
import { isRedirecting } from '../../../config/index.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import { rememberReturnPath } from '../../users/return-path.ts'

/** Redirects to the sign-in method that the user used before. The sign-in returns to the path. */
export function signInAgain(
  context: AuthContext,
  reply: FastifyReply,
  { issuer }: Login,
  returnPath: string,
): FastifyReply {
  rememberReturnPath(context, reply, returnPath)
  const provider = context.rules.findByIssuer(issuer)
  if (isRedirecting(provider))
    return reply.redirect(`${paths.loginProviders}/${provider.id}?prompt=login`, 302)
  const directory = provider ? `&provider=${provider.id}` : ''
  return reply.redirect(`${paths.login}?prompt=login${directory}`, 302)
}

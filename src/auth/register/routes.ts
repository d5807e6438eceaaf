import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isSameText, sha256 } from '../../store/index.ts'
import { type BearerError, sendBearerError } from '../access/access-token.ts'
import { auditEvent } from '../audit.ts'
import { forbidCaching, readJson, sendOAuthError } from '../client/request.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import { LIMITS } from '../limits.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { type ClientMetadata, readClientMetadata } from './metadata.ts'
import { registerClient } from './register-client.ts'

/** `POST /oauth2/register` (RFC 7591). Outside loopback it needs a setting or the initial access token. */
export function addRegisterRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.register, { onRequest: forbidCaching }, async (request, reply) => {
    const fault = checkRegistration(context.settings, request)
    if (fault) return sendBearerError(reply, fault, 'register')
    const json = readJson(request)
    const metadata = json instanceof Refusal ? json : readClientMetadata(json.body)
    if (metadata instanceof Refusal) return sendOAuthError(request, reply, metadata)
    const isAnonymous = request.headers.authorization === undefined
    if (isAnonymous && !context.settings.onLoopback && /(?:^| )system\//.test(metadata.app.scope))
      return sendOAuthError(request, reply, needsAdministrator)
    const tooMuch = isAnonymous ? await checkAnonymous(context, metadata) : undefined
    if (tooMuch) return sendOAuthError(request, reply, tooMuch)
    // The initial access token comes from an administrator, so its clients are approved.
    const registered = await context.store.db.transaction().execute(async trx => {
      const client = await registerClient(trx, metadata, { approved: !isAnonymous, now: context.clock() })
      const event = { kind: 'register', status: 201, client: client.client_id } as const
      await auditEvent(context, request, event, trx)
      return client
    })
    return sendCreated(reply, registered)
  })
}

// A backend service acts without a user, so an administrator must approve it.
const needsAdministrator = new Refusal(
  'invalid_client_metadata',
  'The system/ scopes need the initial access token, or the command line.',
)

/** Limits what clients without the initial access token store. */
async function checkAnonymous(
  { store }: AuthContext,
  metadata: ClientMetadata,
): Promise<Refusal | undefined> {
  if (JSON.stringify(metadata).length > LIMITS.registrationCharacters)
    return new Refusal(
      'invalid_client_metadata',
      `The metadata is longer than ${LIMITS.registrationCharacters} characters.`,
    )
  const { count } = await store.db
    .selectFrom('client')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('approved', '=', false)
    .executeTakeFirstOrThrow()
  return Number(count) < LIMITS.unapprovedClients
    ? undefined
    : new Refusal(
        'access_denied',
        `There are ${LIMITS.unapprovedClients} unapproved clients: an administrator must approve or remove some first.`,
      )
}

function checkRegistration(
  { openRegistration, registrationToken }: AuthSettings,
  { headers: { authorization } }: FastifyRequest,
): BearerError | undefined {
  const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
  if (
    token !== undefined &&
    registrationToken !== undefined &&
    isSameText(sha256(token), sha256(registrationToken))
  )
    return undefined
  if (openRegistration && authorization === undefined) return undefined
  return authorization === undefined ? 'no-token' : 'invalid-token'
}

function sendCreated(reply: FastifyReply, body: Readonly<Record<string, unknown>>): FastifyReply {
  return reply.code(201).send(body)
}

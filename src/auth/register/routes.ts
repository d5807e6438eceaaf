import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isSameText, sha256 } from '../../store/index.ts'
import { type BearerFault, sendBearerFault } from '../access/bearer.ts'
import { auditEvent } from '../audit.ts'
import { forbidCaching, readJson, sendRefused } from '../client/request.ts'
import type { AuthContext, AuthSettings } from '../context.ts'
import { LIMITS } from '../limits.ts'
import { paths } from '../paths.ts'
import { Refusal } from '../refusal.ts'
import { type ClientMetadata, readClientMetadata } from './metadata.ts'
import { registerClient } from './register-client.ts'

/** `POST /oauth2/register` (RFC 7591): open only on loopback, unless it is set so or an initial access token is shown. */
export function registerRoutes(app: FastifyInstance, context: AuthContext): void {
  app.post(paths.register, { onRequest: forbidCaching }, async (request, reply) => {
    const fault = mayRegister(context.settings, request)
    if (fault) return sendBearerFault(reply, fault, 'register')
    const json = readJson(request)
    const metadata = json instanceof Refusal ? json : readClientMetadata(json.body)
    if (metadata instanceof Refusal) return sendRefused(request, reply, metadata)
    const nameless = request.headers.authorization === undefined
    if (nameless && !context.settings.onLoopback && /(?:^| )system\//.test(metadata.scope))
      return sendRefused(request, reply, needsAdministrator)
    const tooMuch = nameless ? await checkStranger(context, metadata) : undefined
    if (tooMuch) return sendRefused(request, reply, tooMuch)
    // An administrator handed the initial access token out, and so vouches for who shows it.
    const registered = await context.store.db.transaction().execute(async trx => {
      const client = await registerClient(trx, context, metadata, { approved: !nameless })
      const event = { kind: 'register', status: 201, client: client.client_id } as const
      await auditEvent(context, request, event, trx)
      return client
    })
    return created(reply, registered)
  })
}

// No user stands between a back end and the records, so somebody has to vouch for it.
const needsAdministrator = new Refusal(
  'invalid_client_metadata',
  'The system/ scopes need the initial access token, or the command line.',
)

/** What a client without the initial access token may store. */
async function checkStranger({ store }: AuthContext, metadata: ClientMetadata): Promise<Refusal | undefined> {
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
        `There are ${LIMITS.unapprovedClients} unapproved clients: an administrator has to approve or remove some first.`,
      )
}

function mayRegister(
  { openRegistration, registrationToken }: AuthSettings,
  { headers: { authorization } }: FastifyRequest,
): BearerFault | undefined {
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

function created(reply: FastifyReply, body: Readonly<Record<string, unknown>>): FastifyReply {
  return reply.code(201).send(body)
}

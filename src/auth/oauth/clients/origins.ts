import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import type { Schema, Store } from '../../../store/index.ts'
import { type Client, parseList } from './client.ts'

/** The web origins of a client's redirect URIs and launch URL. Private-use schemes have none. */
function listOrigins(client: {
  readonly redirectUris: readonly string[]
  readonly launchUrl: string | undefined
}): ReadonlySet<string> {
  const urls = [...client.redirectUris, ...(client.launchUrl === undefined ? [] : [client.launchUrl])]
  const origins = urls.filter(url => URL.canParse(url)).map(url => new URL(url).origin)
  return new Set(origins.filter(origin => origin !== 'null'))
}

/** Stores the origins of a client, in the transaction that writes its redirect URIs or launch URL. */
export async function storeOrigins(db: Kysely<Schema>, clientId: string): Promise<void> {
  const row = await db
    .selectFrom('client')
    .select(['redirect_uris', 'launch_url'])
    .where('client_id', '=', clientId)
    .executeTakeFirst()
  if (!row) return
  const redirectUris = parseList(row.redirect_uris)
  const origins = [...listOrigins({ redirectUris, launchUrl: row.launch_url ?? undefined })]
  await db.deleteFrom('client_origin').where('client_id', '=', clientId).execute()
  if (origins.length === 0) return
  await db
    .insertInto('client_origin')
    .values(origins.map(origin => ({ client_id: clientId, origin })))
    .onConflict(conflict => conflict.doNothing())
    .execute()
}

/** Whether any client has this origin. A preflight request names the origin, but not the client. */
async function isRegisteredOrigin({ db }: Store, origin: string): Promise<boolean> {
  const row = await db
    .selectFrom('client_origin')
    .select('client_id')
    .where('origin', '=', origin)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Allows requests from the registered origins of all clients (SMART 2.2, CORS), without cookies. Once the client is known,
 * `limitToClientOrigins` limits this to its own origins.
 */
export function createOriginHook(store: Store) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.header('vary', 'Origin')
    const { origin } = request.headers
    if (origin !== undefined && (await isRegisteredOrigin(store, origin)))
      reply.header('access-control-allow-origin', origin)
  }
}

export function answerPreflight(_request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .headers({
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'Authorization, Content-Type',
      'access-control-max-age': '600',
    })
    .code(204)
    .send()
}

/** Removes the header if the origin belongs to another client. */
export function limitToClientOrigins(client: Client, request: FastifyRequest, reply: FastifyReply): void {
  const { origin } = request.headers
  if (origin !== undefined && !listOrigins(client).has(origin))
    reply.removeHeader('access-control-allow-origin')
}

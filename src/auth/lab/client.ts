import type { FastifyRequest } from 'fastify'
import type { Transaction } from 'kysely'
import { DAY_MS } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'
import { auditEvent } from '../base/audit.ts'
import { makeFault } from '../base/fault.ts'
import { storeOrigins } from '../oauth/clients/origins.ts'
import { findLaunchUrlFault } from '../oauth/clients/urls.ts'
import type { AuthContext } from '../oauth/context.ts'
import type { LabProblem } from './access.ts'
import { MAX_CLIENTS } from './limits.ts'
import { failLink, failLinkFor } from './read-link.ts'

const SCOPE =
  'openid fhirUser profile launch launch/patient launch/encounter online_access offline_access patient/*.cruds user/*.cruds'

/**
 * Registers a public client for the origin of a launch URL, for a day, or renews it. A registered app keeps its
 * registration. Returns the problem, if there is one.
 */
export async function registerLabClient(
  context: AuthContext,
  request: FastifyRequest,
  { clientId, launchUrl }: { readonly clientId: string; readonly launchUrl: string },
): Promise<LabProblem | undefined> {
  const fault = findLaunchUrlFault(launchUrl)
  if (fault !== undefined) return failLink('launch_url', fault)
  if (!/^[\x21-\x7e]{1,100}$/.test(clientId)) return failLink('client', makeFault('link-client-malformed'))
  return context.store.db.transaction().execute(async trx => {
    const known = await trx
      .selectFrom('client')
      .select(['expires_at', 'disabled'])
      .where('client_id', '=', clientId)
      .executeTakeFirst()
    if (known?.disabled) return failLink('client', makeFault('link-client-disabled'))
    if (known && known.expires_at === null) return undefined
    if (!known && (await isFull(trx))) return failLinkFor('link-apps-too-many', { most: MAX_CLIENTS })
    const { onLoopback } = context.settings
    await storeClient(trx, { clientId, launchUrl, onLoopback, now: context.clock() })
    const reason = 'The lab registered the app for a day'
    await auditEvent(context, request, { kind: 'register', status: 201, client: clientId, reason }, trx)
    return undefined
  })
}

async function isFull(trx: Transaction<Schema>): Promise<boolean> {
  const { count } = await trx
    .selectFrom('client')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('expires_at', 'is not', null)
    .executeTakeFirstOrThrow()
  return Number(count) >= MAX_CLIENTS
}

interface LabClient {
  readonly clientId: string
  readonly launchUrl: string
  readonly onLoopback: boolean
  readonly now: number
}

async function storeClient(
  trx: Transaction<Schema>,
  { clientId, launchUrl, onLoopback, now }: LabClient,
): Promise<void> {
  const renewed = {
    redirect_uris: JSON.stringify([new URL(launchUrl).origin]),
    launch_url: launchUrl,
    expires_at: now + DAY_MS,
  }
  const registered = {
    client_id: clientId,
    name: clientId,
    description: null,
    logo_url: null,
    auth_method: 'none' as const,
    secret_hash: null,
    jwks: null,
    jwks_url: null,
    scope: SCOPE,
    first_party: false,
    created_at: now,
    for_loopback: onLoopback,
  }
  await trx
    .insertInto('client')
    .values({ ...registered, ...renewed })
    .onConflict(conflict => conflict.column('client_id').doUpdateSet(renewed))
    .execute()
  await storeOrigins(trx, clientId)
}

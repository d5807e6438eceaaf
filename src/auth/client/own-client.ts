import type { Store } from '../../store/index.ts'
import type { AuthSettings } from '../context.ts'
import { fileOrigins } from './origins.ts'

/**
 * Registers the app's own client (contract 3), and keeps its addresses and scope as they are set: a setting that is
 * changed takes effect with the next start.
 */
export async function registerOwnClient({ db }: Store, settings: AuthSettings, now: number): Promise<void> {
  const following = {
    redirect_uris: JSON.stringify([`${settings.appUrl}/callback`]),
    post_logout_redirect_uris: JSON.stringify([`${settings.appUrl}/logout`]),
    ...proofOf(settings),
    launch_url: settings.smartClientLaunchUrl,
    scope: settings.app.scope,
  }
  const row = {
    client_id: settings.app.clientId,
    name: 'Demo app',
    description: null,
    logo_url: null,
    secret_hash: null,
    jwks: null,
    first_party: true,
    created_at: now,
    ...following,
  }
  await db.transaction().execute(async trx => {
    await trx
      .insertInto('client')
      .values(row)
      .onConflict(conflict => conflict.column('client_id').doUpdateSet(following))
      .execute()
    await fileOrigins(trx, row.client_id)
  })
}

/** The app serves its key set, and rotates it as it likes. */
function proofOf({ app, appUrl }: AuthSettings) {
  return app.authMethod === 'none'
    ? ({ auth_method: 'none', jwks_url: null } as const)
    : ({ auth_method: 'private_key_jwt', jwks_url: `${appUrl}/jwks` } as const)
}

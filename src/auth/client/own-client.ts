import type { Store } from '../../store/index.ts'
import type { AuthSettings } from '../context.ts'
import { storeOrigins } from './origins.ts'

/**
 * Registers the demo app's client, and updates its URLs and scope at every start, so that changed settings take effect.
 */
export async function registerOwnClient({ db }: Store, settings: AuthSettings, now: number): Promise<void> {
  const configured = {
    redirect_uris: JSON.stringify([`${settings.appUrl}/callback`]),
    post_logout_redirect_uris: JSON.stringify([`${settings.appUrl}/logout`]),
    ...chooseAuthMethod(settings),
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
    ...configured,
  }
  await db.transaction().execute(async trx => {
    await trx
      .insertInto('client')
      .values(row)
      .onConflict(conflict => conflict.column('client_id').doUpdateSet(configured))
      .execute()
    await storeOrigins(trx, row.client_id)
  })
}

function chooseAuthMethod({ app, appUrl }: AuthSettings) {
  return app.authMethod === 'none'
    ? ({ auth_method: 'none', jwks_url: null } as const)
    : ({ auth_method: 'private_key_jwt', jwks_url: `${appUrl}/jwks` } as const)
}

import type { Store } from '../../store/index.ts'
import type { AuthSettings } from '../context.ts'

/**
 * Registers the app's own client (contract 3), and keeps its addresses and scope as they are set: a setting that is
 * changed takes effect with the next start.
 */
export async function registerOwnClient({ db }: Store, settings: AuthSettings, now: number): Promise<void> {
  const following = {
    redirect_uris: JSON.stringify([`${settings.appUrl}/callback`]),
    launch_url: settings.smartClientLaunchUrl,
    scope: settings.app.scope,
  }
  await db
    .insertInto('client')
    .values({
      client_id: settings.app.clientId,
      name: 'Demo app',
      description: null,
      logo_url: null,
      auth_method: 'none',
      secret_hash: null,
      jwks: null,
      jwks_url: null,
      first_party: true,
      created_at: now,
      ...following,
    })
    .onConflict(conflict => conflict.column('client_id').doUpdateSet(following))
    .execute()
}

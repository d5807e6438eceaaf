import { findNearest } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Comparison } from '../../base/refusal.ts'
import type { AuthContext } from '../context.ts'
import { listRegisteredClients } from './store-client.ts'

/** The id of an app that is not registered, beside the one that was probably meant, which only developers see. */
export async function compareClientId({ store, settings }: AuthContext, sent: string): Promise<Comparison> {
  const isReadable = settings.developerTools && sent.length <= LIMITS.parameters.client_id
  const { apps } = isReadable ? await listRegisteredClients(store, {}) : { apps: [] }
  const meant = findNearest(
    sent,
    apps.map(({ id }) => id),
  )
  return {
    name: 'client_id',
    sent,
    expected: meant === undefined ? [] : [meant],
    origin: 'registered',
  }
}

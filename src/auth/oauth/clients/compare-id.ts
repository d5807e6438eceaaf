import { findNearest } from '../../../core/index.ts'
import { makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { AuthContext } from '../context.ts'
import { listRegisteredClients } from './store-client.ts'

/** Refuses the id of an app that is not registered, beside the one that was probably meant, which only developers see. */
export async function refuseUnregistered(
  { store, settings }: AuthContext,
  reason: 'app-not-registered' | 'client-not-registered',
  sent: string,
): Promise<AuthRefusal> {
  const isReadable = settings.developerTools && sent.length <= LIMITS.parameters.client_id
  const { apps } = isReadable ? await listRegisteredClients(store, {}) : { apps: [] }
  const meant = findNearest(
    sent,
    apps.map(({ id }) => id),
  )
  const suggestion = meant === undefined ? [] : [makeFault('meant-other', { meant })]
  return refuse(reason, { clientId: sent, suggestion }).withComparison({
    name: 'client_id',
    sent,
    expected: meant === undefined ? [] : [meant],
    origin: 'registered',
  })
}

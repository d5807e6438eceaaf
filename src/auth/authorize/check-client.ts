import type { Store } from '../../store/index.ts'
import { type Client, findClient } from '../client/client.ts'
import type { Parameters } from '../parameters.ts'
import { Refusal } from '../refusal.ts'

export async function checkClient(store: Store, parameters: Parameters): Promise<Client | Refusal> {
  if (parameters.unreadable.has('client_id'))
    return new Refusal('invalid_request', 'The parameter client_id is repeated or unreadable.')
  const id = parameters.get('client_id')
  if (id === undefined) return new Refusal('invalid_request', 'The parameter client_id is missing.')
  return (await findClient(store, id)) ?? new Refusal('invalid_request', 'The app is not registered here.')
}

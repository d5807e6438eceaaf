import type { SessionBaseContext } from '../context.ts'
import type { AppKeys } from './app-key.ts'
import type { Discovery } from './discovery.ts'

/** The dependencies of every endpoint of the app server. */
export interface AppContext extends SessionBaseContext {
  readonly discovery: Discovery
  readonly appKeys: AppKeys
}

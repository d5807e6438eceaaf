/**
 * The lab: launches of any app with any context, with or without pages, and with simulated errors. The auth server loads it
 * only if the setting is on.
 */
import type { FastifyInstance } from 'fastify'
import type { AuthContext } from '../oauth/context.ts'
import { addAppRoutes } from './apps.ts'
import { addFindRoute } from './find.ts'
import { addLaunchRoutes } from './routes.ts'

export { createLabHooks } from './hooks.ts'
export { makeDeveloperPages } from './paths.ts'

export function addLabRoutes(app: FastifyInstance, context: AuthContext): void {
  addLaunchRoutes(app, context)
  addFindRoute(app, context)
  if (context.settings.onLoopback) addAppRoutes(app, context)
}

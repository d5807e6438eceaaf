/**
 * The reasons for which the app server refuses a launch or a request of its API, with their words. The auth server explains
 * them too, on its activity page. Pure.
 */
export { API_REASONS } from './api.ts'
export { LAUNCH_REASONS } from './launches.ts'
export {
  type AppFailure,
  type AppReason,
  failApp,
  getAppWords,
  isAppReason,
} from './reasons.ts'

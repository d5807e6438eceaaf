import type { Settings } from '../../config/index.ts'
import type { DeveloperPages } from '../base/context.ts'
import { paths } from '../base/paths.ts'

/** The paths of the lab, relative to the issuer. */
export const labPaths = {
  lab: '/lab',
  launch: '/lab/launch',
  find: '/lab/find',
  /** The registered apps, for developers on loopback. */
  apps: '/apps',
  appsNew: '/apps/new',
  appsEdit: '/apps/edit',
  appsRemove: '/apps/remove',
  appsCheck: '/apps/check',
  appsCode: '/apps/code',
} as const

/** Developers register apps on loopback, elsewhere administrators. */
export function makeDeveloperPages({
  onLoopback,
  app,
}: Pick<Settings, 'onLoopback' | 'app'>): DeveloperPages {
  return {
    links: [
      { page: 'developers', href: labPaths.lab, text: 'Lab' },
      ...(onLoopback ? [{ page: 'apps', href: labPaths.apps, text: 'Registered apps' } as const] : []),
    ],
    apps: onLoopback ? labPaths.apps : `${paths.admin}/apps`,
    changeApp(id) {
      if (id === app.clientId) return undefined
      return onLoopback
        ? `${labPaths.appsEdit}?${new URLSearchParams({ client: id })}`
        : `${paths.admin}/apps/${encodeURIComponent(id)}/edit`
    },
    linkWithoutConsent({ client, patient, encounter }) {
      const chosen = { client, patient, ...(encounter !== undefined && { encounter }), skip_consent: '1' }
      return {
        href: `${labPaths.lab}?${new URLSearchParams(chosen)}`,
        text: 'Launch the app in the lab without it',
      }
    },
    launchSettings: labPaths.lab,
  }
}

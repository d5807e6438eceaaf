import type { DeveloperPages } from '../base/context.ts'
import { paths } from '../base/paths.ts'
import type { AuthSettings } from '../base/settings.ts'

/** The paths of the lab, relative to the issuer. */
export const labPaths = {
  lab: '/lab',
  launch: '/lab/launch',
  /** The registered apps, for developers on loopback. */
  apps: '/apps',
  appsNew: '/apps/new',
  appsEdit: '/apps/edit',
  appsRemove: '/apps/remove',
} as const

/** Developers register apps on loopback, elsewhere administrators. */
export function makeDeveloperPages({ onLoopback }: Pick<AuthSettings, 'onLoopback'>): DeveloperPages {
  return {
    start: { href: labPaths.lab, text: 'Lab' },
    apps: onLoopback ? labPaths.apps : `${paths.admin}/apps`,
    buildLaunchUrl: (client, patient) => `${labPaths.lab}?${new URLSearchParams({ client, patient })}`,
  }
}

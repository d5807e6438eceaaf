import { randomBytes } from 'node:crypto'
import type { Values } from './chart.ts'
import type { Cluster } from './cluster.ts'

/** The identity provider of the values that name one. */
export const PROVIDER = new URL('https://idp.ehr.example')
const DATABASE_URL = 'postgres://sallyport@db.ehr.example/sallyport'
const SECRETS: Readonly<Record<string, string>> = {
  SMART_SECRET: randomBytes(32).toString('base64'),
  SMART_DATABASE_URL: DATABASE_URL,
  SMART_LOGIN_PROVIDERS: JSON.stringify([
    {
      id: 'hospital',
      issuer: PROVIDER.origin,
      'client-id': 'sallyport',
      'client-secret': 'a secret of the provider',
    },
  ]),
  SMART_SEED_CLINICIAN_PASSWORD: 'a password that nobody prints',
}
const POLICY = 'rules:\n  - clinicians: all\n    careTeams: own\n'

/** What the values name, and an administrator creates before the installation: nothing else, and no key that is not named. */
export function createPrerequisites(cluster: Cluster, values: Values, certificate: string): void {
  const { existingSecret, secretKeys = ['SMART_SECRET', 'SMART_DATABASE_URL'], migration } = values
  const keys = secretKeys.filter(key => typeof key === 'string')
  cluster.create('Secret', existingSecret, Object.fromEntries(keys.map(key => [key, SECRETS[key] ?? ''])))
  for (const key of secretKeys)
    if (typeof key === 'object')
      cluster.create('Secret', key.secret, { [key.key]: SECRETS[key.variable] ?? '' })
  if (migration?.existingSecret !== undefined)
    cluster.create('Secret', migration.existingSecret, {
      [migration.secretKey ?? 'SMART_DATABASE_URL']: DATABASE_URL.replace('sallyport@', 'owner@'),
    })
  const configMaps: readonly (readonly [name: string | undefined, data: Readonly<Record<string, string>>])[] =
    [
      [values.policy?.existingConfigMap, { 'policy.yaml': POLICY }],
      [values.certificateAuthorities?.existingConfigMap, { 'ca.crt': certificate }],
      ...(values.envFrom ?? []).map(
        ({ configMapRef }) => [configMapRef.name, { SMART_BRAND_SUPPORT: '555 0100' }] as const,
      ),
      ...(values.extraVolumes ?? []).map(({ configMap }) => [configMap.name, { 'logo.svg': LOGO }] as const),
    ]
  for (const [name, data] of configMaps) if (name !== undefined) cluster.create('ConfigMap', name, data)
}

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32"><rect width="32" height="32"/></svg>'

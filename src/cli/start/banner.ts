import type { Configuration, Settings } from '../../config/index.ts'
import { version } from '../../web/index.ts'
import { formatColumns } from '../command.ts'
import type { TestLogin } from './auth.ts'
import type { ServerName } from './parts.ts'

/** What a start prints: the URLs, the test login and how to stop (START-1). */
export function formatBanner(
  { settings, sources }: Configuration,
  names: readonly ServerName[],
  testLogin: TestLogin | undefined,
): string {
  const addresses = {
    auth: [
      ['Portal', `${settings.issuerUrl}/portal`],
      ['Auth server', settings.issuerUrl],
    ],
    fhir: fhirRows(settings),
    app: [['App server', settings.appUrl]],
  } satisfies Record<ServerName, readonly (readonly string[])[]>
  const login = testLogin
    ? [
        [
          'Test login',
          loginText(testLogin, sources.get('seedClinicianPassword') !== 'default', settings.onLoopback),
        ],
      ]
    : []
  const rows = [...names.flatMap(name => addresses[name]), ...login]
  return `Sallyport ${version} is running. Stop it with Ctrl-C.

${formatColumns(rows.map(([title = '', text = '']) => [`  ${title}`, text]))}

`
}

function fhirRows({ fhir, fhirBaseUrl }: Settings): readonly (readonly string[])[] {
  const { upstreamUrl, policyFile } = fhir
  return [
    [upstreamUrl === undefined ? 'FHIR server' : 'Gateway', fhirBaseUrl],
    ...(upstreamUrl === undefined ? [] : [['  in front of', upstreamUrl]]),
    ...(policyFile === undefined ? [] : [['  by policy', policyFile]]),
  ]
}

function loginText(
  { username, password, seeded }: TestLogin,
  passwordIsSet: boolean,
  onLoopback: boolean,
): string {
  if (passwordIsSet) return `${username}, with the password from SMART_SEED_CLINICIAN_PASSWORD`
  if (onLoopback) return `${username} / ${password}`
  return seeded ? `${username} / ${password} (shown only once)` : username
}

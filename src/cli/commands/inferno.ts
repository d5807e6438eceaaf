import { CLIENT_DEFAULTS, ensureClient, findClientFault } from '../../auth/index.ts'
import { readSettings } from '../../config/index.ts'
import { HOW, isFailure } from '../../core/index.ts'
import { type Command, failMisuse, getOptional, printJson } from '../command.ts'
import { performCommand } from '../with-store.ts'
import { describePreset } from './inferno-preset.ts'

const DEFAULT_URL = 'http://localhost:4567'

const inferno: Command = {
  usage: `
Usage: ${HOW} inferno [--url <url>]

Registers the apps that the Inferno test kits need, and prints a preset of the (g)(10) kit 8.0.0 with their ids and secrets,
for its folder config/presets. Run again it changes nothing, and prints the same preset.

Options:
  --url <url>  where the kit runs (default: ${DEFAULT_URL})

Example:
  ${HOW} inferno > sallyport.json`,
  async run(args, io) {
    const url = (getOptional(args, 'url') ?? DEFAULT_URL).replace(/\/+$/, '')
    const apps = listApps(url)
    for (const app of Object.values(apps)) {
      const fault = findClientFault({ ...CLIENT_DEFAULTS, ...app }, {})
      if (fault) throw failMisuse(`Cannot use --url ${url}: ${fault.text}`)
    }
    const secrets = await performCommand(io, 'Cannot register the apps of Inferno', async (admin, sealer) => {
      const { derive } = sealer()
      const secretOf: Record<string, string> = {}
      for (const [id, app] of Object.entries(apps)) {
        secretOf[id] = derive(`secret of ${id}`)
        const done = await ensureClient(admin, id, app, secretOf[id])
        if (isFailure(done)) return done
        io.stderr.write(`${id}: ${done}\n`)
      }
      return secretOf
    })
    printJson(io, describePreset(readSettings(io.env, io.cwd), secrets))
    return 0
  },
}

/** The suites by their path on the kit. g10_certification uses the redirect and launch URLs of `smart`. */
const SUITES = ['smart', 'smart_stu2', 'smart_stu2_2'] as const

const USERS_SCOPE =
  'launch launch/patient openid fhirUser offline_access online_access patient/*.rs user/*.rs'

/** An app has one launch URL, so that each suite has its app with a secret. */
function listApps(url: string) {
  const ofUsers = {
    name: 'Inferno',
    scope: USERS_SCOPE,
    redirectUris: SUITES.map(suite => `${url}/custom/${suite}/redirect`),
  }
  const launchedBy = (suite: (typeof SUITES)[number]) => `${url}/custom/${suite}/launch`
  const keys = {
    authMethod: 'private_key_jwt',
    jwksUrl: `${url}/custom/g10_certification/.well-known/jwks.json`,
  } as const
  const withSecret = (suite: (typeof SUITES)[number]) =>
    ({ ...ofUsers, authMethod: 'client_secret', launchUrl: launchedBy(suite) }) as const
  return {
    'inferno-secret': withSecret('smart'),
    'inferno-secret-stu2': withSecret('smart_stu2'),
    'inferno-secret-stu2-2': withSecret('smart_stu2_2'),
    'inferno-public': { ...ofUsers, authMethod: 'none', launchUrl: launchedBy('smart') },
    'inferno-keys': { ...ofUsers, ...keys, launchUrl: launchedBy('smart') },
    'inferno-backend': { ...keys, scope: 'system/*.rs' },
  } as const
}

export const commands = { inferno }

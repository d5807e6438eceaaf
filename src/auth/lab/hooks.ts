import type { Claims } from '../../jwt/index.ts'
import { Refusal, type RefusalCode } from '../base/refusal.ts'
import type { AuthContext } from '../oauth/context.ts'
import type { Extension, Hooks } from '../oauth/hooks.ts'
import { findLoginByHash, type Login } from '../users/find-login.ts'
import { ISSUED_BY_COMMAND } from './command-line.ts'
import { describeSimulation, LAUNCHED, type LabSettings, type Simulation } from './settings.ts'

type HookContext = Pick<AuthContext, 'store' | 'rules' | 'clock'>

/** Applies the settings of a lab launch to the launch and its grant (LAB-3), and simulates errors (LAB-6). */
export function createLabHooks(context: HookContext): Hooks {
  return {
    readExtension: data => makeExtension(context, JSON.parse(data)),
    explainRecord: ({ reason }) => explainSimulation(reason ?? ''),
    nameOrigin(reason) {
      if (reason.startsWith(ISSUED_BY_COMMAND)) return 'Command line'
      return reason.startsWith(LAUNCHED) ? 'Lab launch' : undefined
    },
  }
}

function makeExtension(context: HookContext, { loginHash, simulate, ...settings }: LabSettings): Extension {
  return {
    ...settings,
    ...(loginHash !== undefined && {
      findLogin: (arrivedAt: number) => findFreshLogin(context, loginHash, arrivedAt),
    }),
    ...(simulate !== undefined && makeSimulation(simulate)),
  }
}

/** As if its user had just signed in. */
async function findFreshLogin(
  context: HookContext,
  loginHash: string,
  arrivedAt: number,
): Promise<Login | undefined> {
  const login = await findLoginByHash(context.store.db, context, loginHash)
  return login && { ...login, createdAt: arrivedAt, authTime: arrivedAt }
}

function makeSimulation(simulate: Simulation): Extension {
  return {
    reason: describeSimulation(simulate),
    refuse: endpoint => simulateRefusal(simulate, endpoint),
    changeClaims: claims => changeClaims(simulate, claims),
    async changeToken(token, event) {
      if (simulate === 'token:slow' && event === 'token')
        await new Promise(resolve => setTimeout(resolve, SLOW_MS))
      return simulate === 'access-token:bad-signature' ? breakSignature(token) : token
    },
  }
}

/** The time that a simulated slow response takes. */
const SLOW_MS = 5_000

/** The text marks the event in the audit trail. */
function simulateRefusal(simulate: Simulation, endpoint: string): Refusal | undefined {
  const [at, error] = simulate.split(':')
  if (at !== endpoint || error === undefined || error === 'slow') return undefined
  const code = error === '500' ? 'server_error' : (error as RefusalCode)
  return new Refusal(code, `${describeSimulation(simulate)}.`)
}

/** The FHIR server fails as the token says. */
function changeClaims(simulate: Simulation, claims: Claims): Claims {
  const { iat, exp } = claims
  const isExpired = simulate === 'access-token:expired' && typeof iat === 'number' && typeof exp === 'number'
  const past = isExpired ? 2 * (exp - iat) + 60 : 0
  return {
    ...claims,
    ...(isExpired && { iat: iat - past, exp: exp - past }),
    ...(/^(fhir|access-token):/.test(simulate) && { simulate }),
  }
}

function breakSignature(token: string): string {
  const at = token.lastIndexOf('.') + 1
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`
}

const SIMULATED = /simulated by the lab: ([a-z0-9:_-]+)/i

function explainSimulation(reason: string): ReturnType<Hooks['explainRecord']> {
  const name = SIMULATED.exec(reason)?.[1]
  if (name === undefined) return undefined
  return {
    badge: 'Simulated',
    details: `Simulated: ${name}`,
    cause: `The lab simulates this error (${name}), as requested by the link of this launch. The request itself may be correct.`,
    action:
      'Check that the app shows the error and recovers from it. Launch the app without the simulated error to continue.',
  }
}

/**
 * `npm run bench -- keycloak`: token requests of Sallyport with two workers beside Keycloak in production mode, both with
 * durable storage in a file and all cores. Each code and refresh token has its own session, and refresh tokens rotate. Needs
 * Linux, Java 17, Maven and about 1 GB of memory.
 */
import { spawnSync } from 'node:child_process'
import { Browser } from '../scripts/test-keycloak/browser.ts'
import { startKeycloak, VERSION } from '../scripts/test-keycloak/keycloak.ts'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { computeChallenge, VERIFIER } from '../src/auth/testing/test-auth-server.ts'
import { freePorts } from '../test/support/free-ports.ts'
import type { Form } from './auth/grants.ts'
import { compare } from './shared/compare.ts'
import { type Contender, readTreeUsage } from './shared/contender.ts'
import { formatForm } from './shared/load.ts'
import { reportServers } from './shared/report.ts'
import {
  makeBackendRequests,
  makeCodeRequests,
  makeRefreshRequests,
  realTime,
  startStack,
  stopStack,
} from './shared/stack.ts'

const REQUESTS = 160
/** Sign-ins at the same time. */
const AT_ONCE = 16
/** The lower one of Sallyport's requests a second, and its requests per CPU second, as a multiple of Keycloak's. */
const GOAL = 1
const USER = { username: 'user', password: 'the password of the user' } as const
const PRODUCTION = ['start', '--db=dev-file', '--http-enabled=true', '--hostname-strict=false']
const OWN = {
  code: makeCodeRequests,
  refresh: makeRefreshRequests,
  'client_credentials RS384': makeBackendRequests,
} as const
type Kind = keyof typeof OWN

async function startOwn(): Promise<Contender> {
  const stack = await startStack(2)
  return {
    name: 'Sallyport, 2 workers, on SQLite, audited',
    port: Number(new URL(stack.place.authUrl).port),
    makeRequests: async (kind, count) => (await OWN[kind as Kind](stack, count)).texts,
    readUsage: () => readTreeUsage(stack.started.child.pid ?? 0),
    stop: () => stopStack(stack),
  }
}

async function startPeer(): Promise<Contender> {
  const backend = new SigningClient('backend', realTime, 'RS384')
  const [port = 0] = await freePorts(1)
  const callback = `http://localhost:${port}/realms/bench`
  const { issuer, pid, stop } = await startKeycloak(port, makeRealm(backend, callback), PRODUCTION)
  const url = new URL(`${issuer}/protocol/openid-connect/token`)
  const makeForm = async (kind: string): Promise<Form> => {
    if (kind === 'code') return makeCodeForm(await createCode(issuer, callback), callback)
    if (kind === 'refresh') return exchange(url, makeCodeForm(await createCode(issuer, callback), callback))
    return { grant_type: 'client_credentials', ...backend.makeProof({ aud: issuer }) }
  }
  return {
    name: `Keycloak ${VERSION}, on H2`,
    port,
    async makeRequests(kind, count) {
      const texts: string[] = []
      for (let at = 0; at < count; at += AT_ONCE) {
        const forms = await Promise.all(Array.from({ length: AT_ONCE }, () => makeForm(kind)))
        texts.push(...forms.map(form => formatForm(url, form)))
      }
      return texts
    },
    readUsage: () => readTreeUsage(pid),
    stop,
  }
}

/** Signs in without an earlier session. The browser follows the redirect to a page of Keycloak. */
async function createCode(issuer: string, callback: string): Promise<string> {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'app',
    redirect_uri: callback,
    scope: 'openid offline_access',
    code_challenge: computeChallenge(VERIFIER),
    code_challenge_method: 'S256',
    state: 's',
    nonce: 'n',
  })
  const browser = new Browser()
  const page = await browser.open(`${issuer}/protocol/openid-connect/auth?${query}`)
  const { url } = await browser.submit(page, USER)
  const code = new URL(url).searchParams.get('code')
  if (code === null) throw new Error(`Cannot bench: no code in ${new URL(url).pathname}`)
  return code
}

function makeCodeForm(code: string, callback: string): Form {
  return {
    grant_type: 'authorization_code',
    code,
    client_id: 'app',
    redirect_uri: callback,
    code_verifier: VERIFIER,
  }
}

async function exchange(url: URL, form: Form): Promise<Form> {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) })
  const { refresh_token: token = '' } = (await response.json()) as { refresh_token?: string }
  return { grant_type: 'refresh_token', refresh_token: token, client_id: 'app' }
}

function makeRealm(backend: SigningClient, callback: string) {
  return {
    realm: 'bench',
    enabled: true,
    sslRequired: 'none',
    revokeRefreshToken: true,
    refreshTokenMaxReuse: 0,
    // Signing in is not measured.
    passwordPolicy: 'hashAlgorithm(pbkdf2-sha256) and hashIterations(1)',
    users: [
      {
        username: USER.username,
        enabled: true,
        emailVerified: true,
        email: 'user@ehr.example',
        firstName: 'Test',
        lastName: 'User',
        realmRoles: ['offline_access'],
        credentials: [{ type: 'password', value: USER.password, temporary: false }],
      },
    ],
    clients: [
      {
        clientId: 'app',
        publicClient: true,
        standardFlowEnabled: true,
        redirectUris: [callback],
        optionalClientScopes: ['offline_access'],
        attributes: { 'pkce.code.challenge.method': 'S256' },
      },
      {
        clientId: backend.id,
        publicClient: false,
        serviceAccountsEnabled: true,
        standardFlowEnabled: false,
        clientAuthenticatorType: 'client-jwt',
        attributes: {
          'use.jwks.string': 'true',
          'jwks.string': backend.jwks,
          'token.endpoint.auth.signing.alg': 'RS384',
        },
      },
    ],
  }
}

async function measure(): Promise<void> {
  const peer = await startPeer()
  const measured = await compare([await startOwn(), peer], {
    requests: Object.fromEntries(Object.keys(OWN).map(kind => [kind, REQUESTS])),
    // The Java virtual machine compiles for a while.
    connections: 16,
    warmRounds: 6,
    rounds: 5,
  })
  await reportServers(
    'keycloak',
    measured.map((it, at) => {
      const own = measured[at - 1]
      if (it.server !== peer.name || !own) return it
      return { ...it, goal: { value: Math.min(own.rate / it.rate, it.cpu / own.cpu), least: GOAL } }
    }),
  )
}

if (spawnSync('mvn', ['-v']).error) process.stdout.write('Cannot measure: Java 17 and Maven are needed\n')
else await measure()

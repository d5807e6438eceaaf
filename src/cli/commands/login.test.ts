import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sallyport } from '../../../test/support/command-line.ts'
import { initialize } from '../../auth/index.ts'
import { readSettings } from '../../config/index.ts'
import { createSealer, openStore } from '../../store/index.ts'

const ISSUER = 'https://idp.ehr.example'
const ADA = {
  iss: ISSUER,
  sub: 'user-1',
  preferred_username: 'ada',
  name: 'Dr. Ada Byron',
  groups: ['clinicians'],
}

describe('sallyport login explain', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'sallyport-login-'))
  const fhir = createServer((request, response) => {
    const isKnown = request.url === '/fhir/Practitioner/byron'
    response
      .writeHead(isKnown ? 200 : 404, { 'content-type': 'application/fhir+json' })
      .end(JSON.stringify({ resourceType: isKnown ? 'Practitioner' : 'OperationOutcome', id: 'byron' }))
  })
  let env: Record<string, string> = {}

  before(async () => {
    await new Promise<void>(resolve => fhir.listen(0, '127.0.0.1', resolve))
    env = {
      SMART_SECRET: 'the secret of these tests',
      SMART_FHIR_BASE_URL: `http://127.0.0.1:${(fhir.address() as AddressInfo).port}/fhir`,
      SMART_LOGIN_PROVIDERS: JSON.stringify([
        {
          id: 'default',
          issuer: ISSUER,
          'client-id': 'sallyport',
          'fhir-user': { template: 'Practitioner/{employee}' },
          allow: { claim: 'groups', values: ['clinicians'] },
          provision: true,
        },
      ]),
    }
    const settings = readSettings(env, cwd)
    const store = await openStore(settings.databaseUrl)
    await initialize({ settings, store, sealer: createSealer(env.SMART_SECRET ?? '') })
    await store.close()
  })
  after(() => {
    fhir.close()
    rmSync(cwd, { recursive: true, force: true })
  })

  const explain = (claims: unknown, ...more: readonly string[]) => {
    writeFileSync(join(cwd, 'claims.json'), JSON.stringify(claims))
    return sallyport(['login', 'explain', '--claims', 'claims.json', ...more], { env, cwd })
  }

  it('says who would be signed in (SIGNIN-13)', async () => {
    assert.deepEqual(await explain({ ...ADA, employee: 'byron' }), {
      exitCode: 0,
      stdout:
        'Provider: default\nSubject: user-1\nSigns in as: ada (Dr. Ada Byron), new account\nFHIR user: Practitioner/byron\nAdministrator: no\n',
      stderr: '',
    })
  })

  it('says why not, with exit code 1 (SIGNIN-13)', async () => {
    const refuse = async (claims: object) => {
      const { exitCode, stdout } = await explain({ ...ADA, ...claims })
      assert.equal(exitCode, 1)
      return stdout.split('\n').at(-2)
    }
    assert.match((await refuse({})) ?? '', /^Refused: bad-claims\. .*The claim employee is missing$/)
    assert.match((await refuse({ employee: 'nobody' })) ?? '', /^Refused: no-practitioner\./)
    assert.match((await refuse({ groups: [] })) ?? '', /^Refused: not-allowed\./)
  })

  it('knows links, which clinician link makes (SIGNIN-13)', async () => {
    const link = (username: string) =>
      sallyport(['clinician', 'link', '--username', username, '--issuer', ISSUER, '--subject', 'user-1'], {
        env,
        cwd,
      })
    assert.deepEqual(await link('nobody'), {
      exitCode: 1,
      stdout: '',
      stderr: 'Cannot link clinician: there is no clinician nobody\n',
    })
    assert.deepEqual(await link('clinician'), {
      exitCode: 0,
      stdout: `Linked clinician clinician to user-1 of ${ISSUER}\n`,
      stderr: '',
    })
    assert.equal((await link('clinician')).exitCode, 0)
    const { stdout } = await explain({ ...ADA, employee: 'byron' })
    assert.match(stdout, /Refused: no-practitioner/, "the clinician's own Practitioner is practitioner-1")
  })

  it('needs a provider and claims', async () => {
    assert.match((await explain({ sub: 'x' })).stderr, /no sign-in provider has the issuer/)
    assert.match(
      (await explain({ sub: 'x' }, '--provider', 'other')).stderr,
      /there is no sign-in provider other/,
    )
    assert.match((await explain({}, '--provider', 'default')).stderr, /the claims have no sub/)
    assert.match((await explain([])).stderr, /expected a JSON object/)
    assert.match((await explain({}, '--claims', '.')).stderr, /^Cannot use --claims: \/.* cannot be read\n$/)
  })
})

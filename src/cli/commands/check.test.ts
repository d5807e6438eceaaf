import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, it } from 'node:test'
import { makeCertificate } from '../../../test/support/certificate.ts'
import { sallyport } from '../../../test/support/command-line.ts'
import { startDirectory } from '../../../test/support/directory.ts'
import { openStore } from '../../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'check-'))
after(() => rmSync(folder, { recursive: true }))
const DAY_MS = 86_400_000

const check = (env: Readonly<Record<string, string>>, ...options: readonly string[]) =>
  sallyport(['check', ...options], { env: { SMART_DATA_DIR: join(folder, 'data'), ...env }, cwd: folder })

/** The lines of a level, as subject and text. */
function listLines(stdout: string, level: string): readonly string[] {
  const lines = stdout.split('\n').filter(line => line.startsWith(`${level} `))
  return lines.map(line => line.slice(level.length).trim().replace(/ {2,}/, ': '))
}

function writeFiles(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

async function openData(name: string): Promise<string> {
  const file = join(folder, name)
  await (await openStore(`sqlite:${file}`)).close()
  return file
}

describe('sallyport check', () => {
  it('finds no problem in a fresh clone, and creates nothing (CHECK-1)', async () => {
    const { exitCode, stdout } = await check({})
    assert.equal(exitCode, 0)
    assert.deepEqual(listLines(stdout, 'ok'), [
      'settings: The settings are valid.',
      'database: The first start creates the database.',
      'FHIR data: The folder accepts writes.',
    ])
    assert.throws(() => mkdirSync(join(folder, 'data', 'x')), { code: 'ENOENT' })
  })

  it('names accounts that were made on loopback and end with a public URL (ENDS-2)', async () => {
    const file = await openData('samples.db')
    const db = new DatabaseSync(file)
    db.exec(
      "insert into clinician (username, password_hash, display_name, fhir_user_id, for_loopback) values ('alba', 'x', 'Alba', 'Patient/1', true)",
    )
    db.close()
    const data = { SMART_DATABASE_URL: `sqlite:${file}` }
    assert.deepEqual(listLines((await check(data)).stdout, 'warning'), [])
    const { stdout } = await check({ ...data, SMART_ISSUER_URL: 'https://auth.example' })
    assert.match(
      listLines(stdout, 'warning').join('\n'),
      /^public URL: Created on loopback, and therefore disabled at a public URL: account alba\. To keep/m,
    )
  })

  it('warns off loopback about settings that make a deployment less secure (CHECK-1)', async () => {
    const settings = { SMART_AUDIT: 'false', SMART_OPEN_METRICS: 'true' }
    const warnings = async (more: Readonly<Record<string, string>>) =>
      listLines((await check({ ...settings, ...more })).stdout, 'warning').filter(line =>
        line.startsWith('security'),
      )
    assert.deepEqual(await warnings({}), [])
    const found = await warnings({ SMART_ISSUER_URL: 'https://auth.example' })
    assert.match(
      found.join('\n'),
      /SMART_AUDIT=false: nothing is recorded\.[\s\S]*every clinician can open every patient\./,
    )
  })

  it('exits with 1 for a warning if a pipeline asks for it with --strict (CHECK-1)', async () => {
    assert.equal((await check({}, '--strict')).exitCode, 0)
    const warned = { SMART_NO_SUCH_SETTING: '1' }
    assert.equal((await check(warned)).exitCode, 0)
    const strict = await check(warned, '--strict')
    assert.equal(strict.exitCode, 1)
    assert.match(strict.stdout, /\n\n1 warning\n$/)
    assert.equal((await check(warned, '--strict', '--json')).exitCode, 1)
  })

  it('lists every invalid setting, and exits with 1 (CHECK-1)', async () => {
    const { exitCode, stdout } = await check({ SMART_WORKERS: 'many', SMART_APP_PORT: 'x' })
    assert.equal(exitCode, 1)
    assert.deepEqual(
      listLines(stdout, 'problem').map(line => line.split(': expected')[0]),
      ['settings: Cannot use SMART_WORKERS', 'settings: Cannot use SMART_APP_PORT'],
    )
    assert.match(stdout, /\n2 problems\n$/)
  })

  it('lists settings that prevent a start together with invalid files (CHECK-1)', async () => {
    writeFiles({ 'policy.yaml': 'rules: everybody', 'issuers.yaml': 'no list' })
    const { exitCode, stdout } = await check({
      SMART_ISSUER_URL: 'https://auth.ehr.example',
      SMART_SECRET: 'a secret of some length',
      SMART_POLICY_FILE: 'policy.yaml',
      SMART_TRUSTED_ISSUERS_FILE: 'issuers.yaml',
      SMART_TLS_CERT: 'missing.pem',
    })
    assert.equal(exitCode, 1)
    const problems = listLines(stdout, 'problem').join('\n')
    assert.match(problems, /^settings: The servers do not start: SMART_TLS_CERT needs SMART_TLS_KEY\.$/m)
    assert.match(problems, /^settings: .*SMART_FHIR_BASE_URL must be set off loopback\.$/m)
    assert.match(problems, /^policy: Cannot use policy file .*Correct the file or its setting\.$/m)
    assert.match(problems, /^trusted issuers: .*expected a list of issuers/m)
  })

  describe('of a certificate', () => {
    const env = {
      SMART_ISSUER_URL: 'https://localhost:9000',
      SMART_FHIR_BASE_URL: 'https://localhost:8080/fhir',
      SMART_APP_URL: 'https://127.0.0.1:8081',
      SMART_TLS_CERT: 'cert.pem',
      SMART_TLS_KEY: 'key.pem',
    }
    async function listProblems(
      { cert, key }: { readonly cert: string; readonly key: string },
      more: Readonly<Record<string, string>> = {},
    ): Promise<readonly string[]> {
      writeFiles({ 'cert.pem': cert, 'key.pem': key })
      const { stdout } = await check({ ...env, ...more })
      return listLines(stdout, 'problem').filter(line => line.startsWith('certificate'))
    }

    it('reports its expiry (CHECK-2)', async () => {
      const soon = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10)
      assert.deepEqual(await listProblems(makeCertificate()), [
        `certificate: The certificate expires on ${soon}, within 14 days. Replace the files of SMART_TLS_CERT and SMART_TLS_KEY.`,
      ])
      const [ended = ''] = await listProblems(makeCertificate(Date.now() - 3 * DAY_MS))
      assert.match(ended, /^certificate: The certificate expired on \d{4}-\d\d-\d\d\. Replace/)
      const [early = ''] = await listProblems(makeCertificate(Date.now() + 30 * DAY_MS))
      assert.match(early, /not yet valid/)
    })

    it('reports another key, another host and a missing file (CHECK-2)', async () => {
      const { cert } = makeCertificate()
      const [mismatch = ''] = await listProblems({ cert, key: makeCertificate().key })
      assert.match(mismatch, /^certificate: Cannot use SMART_TLS_CERT with SMART_TLS_KEY: .*mismatch.* Set /)
      const host = await listProblems(makeCertificate(), { SMART_APP_URL: 'https://app.ehr.example' })
      assert.match(host.join('\n'), /The certificate does not cover app\.ehr\.example\. Request one/)
      const [missing = ''] = await listProblems(makeCertificate(), { SMART_TLS_KEY: 'none.pem' })
      assert.match(missing, /Cannot read SMART_TLS_KEY .*none\.pem: ENOENT/)
    })
  })

  describe('of a database', () => {
    const listOf = async (env: Readonly<Record<string, string>>) => {
      const { stdout } = await check(env)
      return stdout.split('\n').filter(line => / (?:database|secret) /.test(line))
    }

    it('tries a write and the secret, and changes nothing (CHECK-1)', async () => {
      const file = await openData('current.db')
      const env = { SMART_DATABASE_URL: `sqlite:${file}`, SMART_SECRET: 'a secret of some length' }
      const lines = await listOf(env)
      assert.match(lines[0] ?? '', /^ok +database +The database accepts writes\.$/)
      assert.match(lines[1] ?? '', /^ok +secret +The secret decrypts the signing keys\.$/)
      const database = new DatabaseSync(file)
      database.exec("insert into signing_key values ('k', 1, '{}', 'v1.unreadable', 0, 0, null)")
      assert.match((await listOf(env))[1] ?? '', /^problem +secret .*keys withdraw --all\.$/)
      database.exec('delete from schema_migration where name = (select max(name) from schema_migration)')
      assert.match((await listOf(env))[0] ?? '', /^ok +database +The next start applies 1 migration/)
      database.exec("insert into schema_migration values ('9999-later', '9999-later', 0)")
      assert.match((await listOf(env))[0] ?? '', /^problem +database .*a newer version of Sallyport/)
      database.close()
    })

    it('reports one that is unreachable, without its password', async () => {
      const [line = ''] = await listOf({ SMART_DATABASE_URL: 'postgres://me:hidden@127.0.0.1:1/ehr' })
      assert.match(line, /^problem +database +Cannot open database .*ECONNREFUSED.* Check SMART_DATABASE_URL/)
      assert.doesNotMatch(line, /hidden/)
    })

    it('reports a data folder that cannot be used', async () => {
      writeFiles({ 'a-file': '' })
      const [line = ''] = await listOf({ SMART_DATA_DIR: 'a-file' })
      assert.match(line, /^problem +database .*a-file is not a folder that this user can write/)
    })

    it('reports a data folder in which the embedded FHIR server cannot write, whatever the database', async () => {
      writeFiles({ 'a-file': '' })
      const env = { SMART_DATABASE_URL: 'postgres://me@127.0.0.1:1/ehr', SMART_DATA_DIR: 'a-file' }
      const { stdout } = await check(env)
      assert.match(stdout, /^problem +FHIR data .*a-file is not a folder that this user can write/m)
      const upstream = await check({ ...env, SMART_FHIR_UPSTREAM_URL: 'http://127.0.0.1:1/fhir' })
      assert.doesNotMatch(upstream.stdout, /FHIR data/)
    })
  })

  it('reports sign-in providers and an upstream that cannot be used (CHECK-1)', async () => {
    const upstream = createServer((request, response) => {
      const version = request.url?.startsWith('/r5/') ? '5.0.0' : '4.0.1'
      if (request.url?.startsWith('/closed/')) response.writeHead(401).end()
      else if (request.url?.startsWith('/forbidden/')) response.writeHead(403).end()
      else if (request.url === '/proxied/metadata') response.writeHead(403).end()
      else if (request.url?.startsWith('/proxied/'))
        response.writeHead(404, { 'x-powered-by': 'HAPI FHIR 8.8.0 REST Server' }).end()
      else if (request.url?.endsWith('/metadata')) response.end(`{"fhirVersion": "${version}"}`)
      else response.writeHead(404).end()
    })
    await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
    const directory = await startDirectory([])
    writeFiles({ password: 'service password', 'wrong-password': 'x' })
    const makeLdap = (id: string, file: string) =>
      `{kind: ldap, id: ${id}, name: A, url: "${directory.url}", bind-dn: "cn=service,dc=ehr,dc=example", bind-password-file: ${file}, base-dn: "dc=ehr,dc=example"}`
    const oidc = `{id: none, name: B, issuer: "${url}/idp", client-id: sallyport}`
    writeFiles({
      'sallyport.yaml': `smart.login.providers: [${makeLdap('right', 'password')}, ${makeLdap('wrong', 'wrong-password')}, ${oidc}]`,
    })
    try {
      const run = async (base: string) => (await check({ SMART_FHIR_UPSTREAM_URL: `${url}${base}` })).stdout
      const stdout = await run('/r4')
      assert.match(stdout, /^ok +sign-in right +The directory accepts the service account/m)
      assert.match(stdout, /^problem +sign-in wrong +Cannot use ldap:.*Invalid ?Credentials/im)
      assert.match(stdout, /^problem +sign-in none +Cannot use http:.*\/idp: /m)
      assert.match(stdout, /^ok +upstream +The upstream is a FHIR R4 server\.$/m)
      assert.match(
        await run('/r5'),
        /^problem +upstream .* has FHIR version 5\.0\.0\. The gateway needs 4\.0\.$/m,
      )
      assert.match(
        await run('/closed'),
        /^problem +upstream .* refuses the credentials of the gateway \(401\)/m,
      )
      assert.match(
        await run('/forbidden'),
        /^problem +upstream .* refuses the requests of the gateway \(403\)/m,
      )
      assert.match(stdout, /^ok +upstream +In use: profile post-only: nothing shows that a PUT/m)
      const proxied = await run('/proxied')
      assert.match(proxied, /^warning +upstream .*\/metadata is refused \(403\), other requests are not/m)
      assert.match(proxied, /^ok +upstream +In use: profile hapi: recognized by its header X-Powered-By\.$/m)
      assert.doesNotMatch(proxied, /credentials of the gateway/)
      upstream.close().closeAllConnections()
      assert.match(
        await run('/r4'),
        /^problem +upstream +Cannot reach http.*ECONNREFUSED.* Check SMART_FHIR/m,
      )
    } finally {
      rmSync(join(folder, 'sallyport.yaml'))
      await directory.close()
    }
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findModuleFaults } from './modules.ts'

function faults(...files: readonly (readonly [path: string, text: string])[]): readonly string[] {
  return findModuleFaults(new Map(files))
}

describe('findModuleFaults', () => {
  it('finds nothing in a file that keeps to the rules', () => {
    const text =
      "import { permits } from '../smart/index.ts'\nimport { x } from './x.ts'\nimport pg from 'pg'\n"
    assert.deepEqual(faults(['src/auth/server.ts', text]), [])
  })

  it('lets every module import the ground floor', () => {
    const text = "import { fail } from '../core/index.ts'\n"
    assert.deepEqual(faults(['src/store/a.ts', text], ['src/jwt/a.ts', text], ['src/fhir/a.ts', text]), [])
  })

  const wrong: readonly (readonly [file: string, text: string, fault: RegExp])[] = [
    ['src/auth/a.ts', "import { x } from '../session/index.ts'", /auth may not import session/],
    ['src/session/a.ts', "import type { X } from '../auth/index.ts'", /session may not import auth/],
    ['src/store/a.ts', "import { x } from '../fhir/index.ts'", /store may not import fhir/],
    ['src/web/http/a.ts', "import { x } from '../../audit/index.ts'", /web\/http may not import audit/],
    ['src/interceptor/a.ts', "import { x } from '../web/ui/index.ts'", /interceptor may not import web/],
    [
      'src/backends/sqlite/a.ts',
      "import { x } from '../../interceptor/index.ts'",
      /backends\/sqlite may not import interceptor/,
    ],
    [
      'src/fhir-api/a.ts',
      "import { x } from '../interceptor/index.ts'",
      /fhir-api may not import interceptor/,
    ],
    ['src/auth/a.ts', "import { x } from '../fhir-api/index.ts'", /auth may not import fhir-api/],
    ['src/core/a.ts', "import { x } from '../fhir/index.ts'", /core may not import fhir/],
    ['src/fhir/a.ts', "import { x } from '../smart/index.ts'", /fhir may not import smart/],
    ['src/fhir/a.ts', "import type { X } from '../smart/index.ts'", /fhir may not import smart/],
    ['src/auth/a.ts', "import {\n  a,\n  b,\n} from '../cli/index.ts'", /auth may not import cli/],
    ['src/auth/a.ts', "export { x } from '../cli/index.ts'", /auth may not import cli/],
    ['src/auth/a.ts', "export * from '../cli/index.ts'", /auth may not import cli/],
    ['src/auth/a.ts', "import '../cli/index.ts'", /auth may not import cli/],
    ['src/auth/a.ts', "const x = await import('../cli/index.ts')", /auth may not import cli/],
    ['src/auth/login/a.ts', "import { x } from '../../store/store.ts'", /imports src\/store\/store.ts, not/],
    ['src/auth/a.test.ts', "import { x } from '../store/store.ts'", /not src\/store\/index.ts/],
    ['src/auth/a.ts', "import { x } from '../store/sqlite/index.ts'", /not src\/store\/index.ts/],
    ['src/auth/a.ts', "import { x } from '../store/testing/suite.ts'", /not src\/store\/index.ts/],
    ['src/cli/a.ts', "import { x } from '../store/store.ts'", /not src\/store\/index.ts/],
    ['src/cli/a.ts', 'run(process.env)', /only config reads process.env/],
    ['src/auth/a.ts', "import { x } from '../../test/support/x.ts'", /which is not source code/],
    [
      'src/auth/a.ts',
      "import { x } from '../sample-patients/index.ts'",
      /auth may not import sample-patients/,
    ],
    ['src/attic/a.ts', '', /attic is not a module/],
    ['src/auth/a.ts', 'const x = process.env.HOME', /only config reads process.env/],
    [
      'src/web/http/a.ts',
      "import { gunzipSync, gzip } from 'node:zlib'",
      /work in the thread pool goes through runInThreadPool/,
    ],
    [
      'src/jwt/a.ts',
      'const signLater = promisify(sign)',
      /work in the thread pool goes through runInThreadPool/,
    ],
    ['src/auth/a.ts', "console.log('x')", /only cli prints/],
    ['src/store/a.ts', "process.stdout.write('x')", /only cli prints/],
    ['src/auth/index.ts', "export { a } from './a.ts'", /does not begin with a comment/],
    ['src/auth/pages/a.ts', "if (provider.kind === 'oidc') redirect()", /decides by the kind of a provider/],
    ['src/cli/a.ts', "switch (kind) {\n  case 'ldap':", /decides by the kind of a provider/],
    ['src/auth/oauth/a.ts', '// As in the lab.', /mentions the lab/],
    ['src/auth/initialize.ts', "import { x } from './lab/settings.ts'", /mentions the lab/],
    ['src/cli/a.ts', 'if (settings.hasLab) start()', /mentions the lab/],
    ['src/session/a.ts', "refuse('SMART_LAB is not true')", /mentions the lab/],
    ['src/smart/a.ts', 'readonly simulate?: string', /mentions the lab or its simulated errors/],
    ['src/interceptor/a.ts', 'const SIMULATED = 1', /mentions the lab or its simulated errors/],
  ]
  for (const [file, text, fault] of wrong) {
    it(`finds ${fault.source} in ${JSON.stringify(text.slice(0, 60))} (SERVICE-2)`, () => {
      const found = faults([file, text])
      assert.equal(found.length, 1)
      assert.match(found[0] ?? '', fault)
    })
  }

  it('finds folders that import each other, at every level', () => {
    const found = faults(
      ['src/session/api/a.ts', "import { b } from '../demo/b.ts'"],
      ['src/session/api/c.ts', ''],
      ['src/session/demo/b.ts', "import type { C } from '../api/c.ts'"],
    )
    assert.deepEqual(found, ['src/session: import cycle: api → demo → api'])
    const withFile = faults(
      ['src/fhir/search/a.ts', "import { b } from '../b.ts'"],
      ['src/fhir/search/c.ts', ''],
      ['src/fhir/b.ts', "import { c } from './search/c.ts'"],
    )
    assert.deepEqual(withFile, ['src/fhir: import cycle: search → b.ts → search'])
  })

  it('finds an import of a later part of the auth server', () => {
    const found = faults(
      ['src/auth/users/a.ts', "import type { B } from '../oauth/b.ts'"],
      ['src/auth/oauth/b.ts', "import { C } from '../base/c.ts'"],
      ['src/auth/base/c.ts', ''],
    )
    assert.deepEqual(found, [
      'src/auth/users/a.ts: imports src/auth/oauth/b.ts, a later part of the auth server',
    ])
  })

  it('finds a page of the auth server that imports another page', () => {
    const found = faults(
      ['src/auth/pages/home/a.ts', "import { b } from '../portal/b.ts'"],
      ['src/auth/pages/portal/b.ts', "import { c } from '../parts/c.ts'"],
      ['src/auth/pages/parts/c.ts', ''],
      ['src/auth/admin/d.ts', "import { b } from '../pages/portal/b.ts'"],
    )
    assert.deepEqual(found, [
      'src/auth/pages/home/a.ts: imports src/auth/pages/portal/b.ts, another page; what pages share is in pages/parts',
      'src/auth/admin/d.ts: imports src/auth/pages/portal/b.ts, another page; what pages share is in pages/parts',
    ])
  })

  it('finds files that import each other, types included', () => {
    const found = faults(
      ['src/auth/a.ts', "import { b } from './b.ts'"],
      ['src/auth/b.ts', "import type { C } from './c.ts'"],
      ['src/auth/c.ts', "import { a } from './a.ts'"],
    )
    assert.deepEqual(found, ['import cycle: src/auth/a.ts → src/auth/b.ts → src/auth/c.ts → src/auth/a.ts'])
  })

  it('allows two files that import the same third one', () => {
    const found = faults(
      ['src/auth/a.ts', "import { b } from './b.ts'\nimport { c } from './c.ts'"],
      ['src/auth/b.ts', "import { c } from './c.ts'"],
      ['src/auth/c.ts', ''],
    )
    assert.deepEqual(found, [])
  })

  const right: readonly (readonly [file: string, text: string])[] = [
    ['src/backends/upstream/a.ts', "import { x } from '../../fhir-api/index.ts'"],
    ['src/cli/a.ts', "import { x } from '../auth/index.ts'\nconsole.log('x')"],
    ['src/cli/main.ts', 'run(process.env)'],
    ['src/cli/a.ts', "import { x } from '../import/index.ts'"],
    ['src/cli/a.ts', "import { x } from '../sample-patients/index.ts'"],
    ['src/config/a.ts', 'const x = process.env.HOME'],
    ['src/web/http/a.ts', "import { gzip } from 'node:zlib'\nrunInThreadPool(() => zip(it))"],
    ['src/auth/a.test.ts', "import { x } from '../interceptor/index.ts'\nprocess.env.HOME"],
    ['src/auth/a.test.ts', "import { x } from '../../test/support/x.ts'"],
    ['src/auth/a.ts', "// like console.log, or process.env\n/* import { x } from '../cli/index.ts' */"],
    ['src/backends/upstream/a.test.ts', "import { x } from '../sqlite/testing/suite.ts'"],
    ['src/auth/table.ts', "'row',\n".repeat(900)],
    ['src/auth/server.ts', "const lab = await import('./lab/index.ts')"],
    ['src/auth/lab/a.ts', 'const simulate = 1'],
    ['src/auth/users/providers/a.ts', "if (provider.kind === 'oidc') check()"],
    ['src/auth/a.ts', "available('laboratory', label, labels, collaborate)"],
    ['src/interceptor/index.ts', "/** A module. */\nexport { x } from './simulate.ts'"],
    ['src/auth/a.test.ts', 'settings: { lab: true }'],
    ['test/a.test.ts', "import { x } from '../src/auth/server.ts'"],
  ]
  for (const [file, text] of right) {
    it(`allows ${JSON.stringify(text.slice(0, 60))} in ${file}`, () => {
      assert.deepEqual(faults([file, text]), [])
    })
  }
})

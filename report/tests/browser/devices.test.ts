// The memory of devices: figures are those of the program itself and of the commands, and failed requests are listed.

import assert from "node:assert/strict";
import type { MemoryCurve } from "../../src/engine/memory/methods";
import { FREE, PENDING, type SegmentColumns, TAKEN } from "../../src/engine/memory/segments";
import type { DeviceMemory, Head } from "../../src/shared/format";
import { bytesText, exactShareText } from "../../src/shared/units";
import { inBrowsers } from "./browsers";
import { amountsOf, amountsOfHeap, expected, queried, type StateFigure } from "./numbers";
import { Opened, until } from "./opened";

async function devicesOf(opened: Opened): Promise<DeviceMemory[]> {
  const { head } = await queried<{ head: Head }>(opened.page, "open");
  return head.memory!.devices;
}

inBrowsers(["chromium", "firefox"], "devices have the numbers of heap and of the program itself", async (browser) => {
  const opened = await Opened.open(browser, "devices");
  const devices = await devicesOf(opened);
  const { account, heap } = expected.devices;
  assert.deepEqual(
    devices.map((of) => of.label),
    ["NVIDIA H200 (device 0)", "Device 1"],
  );
  for (const [number, device] of devices.entries()) {
    assert.deepEqual(amountsOf(device), amountsOfHeap(heap[number]!.totals));
    assert.equal(device.peak.bytes, account[number]!.peak);
    const { curveColumns } = await queried<MemoryCurve>(opened.page, "memoryCurve", device.device);
    assert.equal(Math.max(...curveColumns.taken), account[number]!.peak);
    const failures = device.host!.failures.map(({ size, free }) => [size, free]);
    assert.deepEqual(failures, account[number]!.failures);
  }
  const [first, second] = devices as [DeviceMemory, DeviceMemory];
  assert.deepEqual(
    [first.fromBefore, second.fromBefore].map(({ blocks }) => blocks),
    [1, 0],
  );
  assert.deepEqual([first.host!.states.length, second.host!.states.length], [1, 0]);
  const [state] = first.host!.states;
  const wanted = account[0]!.state!;
  for (const [name, value] of Object.entries(wanted)) assert.equal(state![name as StateFigure], value, name);
  const pools = first.host!.pools.map((pool) => pool.name);
  assert.deepEqual(pools, ["default", "graph 3"]);
  const reserved = (await queried<MemoryCurve>(opened.page, "memoryCurve", 0)).curveColumns.host!.reserved;
  assert.deepEqual([Math.max(...reserved), first.host!.reservedPeak.reserved], [wanted.reserved, wanted.reserved]);
  await opened.close();
});

inBrowsers(["chromium"], "the blocks of segments add up to the state of the allocator", async (browser) => {
  const opened = await Opened.open(browser, "devices");
  const { segmentsColumns, blocksColumns } = await queried<SegmentColumns>(opened.page, "memorySegments", 0, 0);
  const { size, requested: wanted, use } = blocksColumns;
  const sum = (of: number, column: Float64Array) =>
    Array.from(column).reduce((bytes, value, block) => (use[block] === of ? bytes + value : bytes), 0);
  const state = expected.devices.account[0]!.state!;
  assert.deepEqual(
    [sum(TAKEN, size), sum(TAKEN, wanted), sum(PENDING, size), sum(FREE, size)],
    [state.allocated, state.requested, state.pending, state.free],
  );
  assert.equal(
    Array.from(segmentsColumns.size).reduce((all, bytes) => all + bytes, 0),
    state.reserved,
  );
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "the first device is shown if nothing else was recorded", async (browser) => {
  const opened = await Opened.open(browser, "devices", { address: "view=memory" });
  const { account } = expected.devices;
  const chosen = () => opened.text('.choice[aria-label="Memory of"] [aria-pressed=true]');
  const peak = () => opened.text(".memory-card[aria-pressed=true] strong");
  assert.deepEqual([await chosen(), await peak()], ["NVIDIA H200 (device 0)", bytesText(account[0]!.peak)]);
  assert.match(await opened.text(".memory-content"), /activations/);
  const state = account[0]!.state!;
  const figures = await opened.text(".memory-figures");
  for (const bytes of [state.reserved, state.allocated, state.free, state.largestFree])
    assert.ok(figures.includes(bytesText(bytes)), `${bytes} in ${figures}`);
  assert.ok(figures.includes(exactShareText(1 - state.largestFree / state.free)), figures);
  await opened.page.click('.choice[aria-label="Memory of"] button:last-child');
  await opened.settled();
  assert.deepEqual([await chosen(), await peak()], ["Device 1", bytesText(account[1]!.peak)]);
  assert.equal(await opened.page.$(".memory-failures"), null);
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "a failed request shows its stack", async (browser) => {
  const opened = await Opened.open(browser, "devices");
  await opened.page.click(".number-card.failures");
  await opened.shows("memory");
  const [[size, free]] = expected.devices.account[0]!.failures as [[number, number]];
  const row = await opened.text(".memory-failure");
  assert.ok(row.includes(bytesText(size)) && row.includes(bytesText(free)), row);
  assert.match(await opened.text(".memory-stack"), /main[\s\S]*too_much[\s\S]*take/);
  await opened.page.click(".memory-failure-open > button");
  await opened.settled();
  const [device] = await devicesOf(opened);
  const { at } = Object.fromEntries(
    [...(await opened.address())].map(([name, value]) => [name.split(".").at(-1), value]),
  );
  assert.equal(device!.moments!.times[Number(at)], device!.host!.failures[0]!.timeNs);
  await opened.page.click(".memory-failure");
  await until(opened.page, "a closed row", () => document.querySelector(".memory-stack") === null);
  await opened.close();
});

inBrowsers(["chromium"], "a click on its mark opens a failed request", async (browser) => {
  const opened = await Opened.open(browser, "devices", { address: "view=memory" });
  const [device] = await devicesOf(opened);
  const { time } = (await queried<MemoryCurve>(opened.page, "memoryCurve", 0)).curveColumns;
  const share = (device!.host!.failures[0]!.timeNs - time[0]!) / (time[time.length - 1]! - time[0]!);
  const bounds = (await (await opened.page.$(".memory-chart .u-over"))!.boundingBox())!;
  assert.equal(await opened.page.$(".memory-stack"), null);
  await opened.page.mouse.click(bounds.x + share * bounds.width, bounds.y + bounds.height / 2);
  await opened.settled();
  assert.equal((await opened.address()).get("memory.failure"), "0");
  assert.match(await opened.text(".memory-stack"), /too_much/);
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "keys go through the blocks of segments", async (browser) => {
  const opened = await Opened.open(browser, "devices", { address: "view=memory" });
  const blocks = expected.devices.account[0]!.state!.blocks;
  await opened.page.focus(".memory-ribbon canvas");
  const status = () => opened.text(".memory-segments .flame-status");
  await opened.page.keyboard.press("ArrowRight");
  await opened.settled();
  assert.match(await status(), new RegExp(`Block 1 of ${blocks}: In use`));
  assert.match(await opened.text(".memory-block"), /allocated before the recording/);
  await opened.page.keyboard.press("End");
  await opened.settled();
  assert.match(await status(), new RegExp(`Block ${blocks} of ${blocks}: `));
  const height = () => opened.page.$eval(".memory-ribbon canvas", (canvas) => canvas.clientHeight);
  const before = await height();
  await opened.page.keyboard.press("+");
  await opened.settled();
  assert.ok((await height()) > before);
  await opened.close();
});

inBrowsers(["chromium"], "the curve can be that of a pool", async (browser) => {
  const opened = await Opened.open(browser, "devices", { address: "view=memory" });
  await opened.page.select('select[aria-label="Pool of the curve"]', "1");
  await opened.settled();
  assert.equal((await opened.address()).get("memory.pool"), "1");
  assert.match(await opened.text(), /The curve shows one pool/);
  const pressed = await opened.page.$$eval(".memory-legend .key.reserved", (keys) => keys.length);
  assert.equal(pressed, 1);
  await opened.close();
});

"""Kernels on a device: shader modules, layouts, and a pipeline for each set of specialisation values."""

from __future__ import annotations

import math
import threading
from typing import Any

from gristmill.plugin.artifacts import KernelRecord
from gristmill_vulkan.debugging import dump
from gristmill_vulkan.descriptors import STORAGE_BUFFER, UNIFORM_BUFFER
from gristmill_vulkan.interrupts import without_interrupts
from gristmill_vulkan.kernel_forms import KernelForm
from gristmill_vulkan.kernel_limits import check_kernel, check_module
from gristmill_vulkan.logical import PUSH_DESCRIPTORS, LogicalDevice
from gristmill_vulkan.pipeline_cache import PipelineCache
from gristmill_vulkan.results import DeviceGoneError

COMPUTE_STAGE = 0x20
_PUSH_DESCRIPTOR_LAYOUT = 0x1
_FOR_PUSH_DESCRIPTORS, COMPUTE = 1, 1
"""VkDescriptorUpdateTemplateType and VkPipelineBindPoint."""
_REQUIRE_FULL_SUBGROUPS = 0x2
"""VkPipelineShaderStageCreateFlagBits."""


class Kernel:
    """A kernel of a loaded blob."""

    def __init__(
        self, device: LogicalDevice, cache: PipelineCache, code: bytes, record: KernelRecord, form: KernelForm
    ) -> None:
        """Raises UserError (GM0935) for what the device does not allow, VulkanError for what the driver refuses."""
        check_kernel(device, record, form)
        check_module(device, record, code)
        self.device = device
        self.record = record
        self.form = form
        self.writes = tuple(argument.written for argument in record.arguments)
        self._cache = cache
        self._pipelines: dict[tuple[int, ...], Any] = {}
        self._lock = threading.Lock()
        self.module: Any = None
        self.set_layout: Any = None
        self.layout: Any = None
        self.template: Any = None
        self.report_address = 0
        """Where the kernel reports asserts that fail, which must be said before it is launched; 0 if it has none."""
        self.native_state: tuple[Any, ...] | None = None
        """What machine code that launches the kernel reads, if there is any; the kernel keeps it."""
        self.uses_push_descriptors = (
            PUSH_DESCRIPTORS in device.extensions and form.descriptors <= device.physical.limits["max_push_descriptors"]
        )
        try:
            self._make(code)
        except BaseException:
            self.destroy()
            raise

    def _make(self, code: bytes) -> None:
        api, ffi, device = self.device.api, self.device.api.ffi, self.device.handle
        dump(self.record.name, code)
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.memmove(words, code, len(code))
        made = ffi.new("VkShaderModule *")
        info = api.new("VkShaderModuleCreateInfo", codeSize=len(code), pCode=words)
        api.call("vkCreateShaderModule", device, info, ffi.NULL, made)
        self.module = made[0]
        if self.form.is_bound:
            self._make_set_layout()
        layouts = ffi.new("VkDescriptorSetLayout[]", [self.set_layout] if self.form.is_bound else [])
        layout = ffi.new("VkPipelineLayout *")
        about = api.new("VkPipelineLayoutCreateInfo", setLayoutCount=len(layouts), pSetLayouts=layouts)
        if self.form.push_bytes:
            pushed = ffi.new("VkPushConstantRange *", {"stageFlags": COMPUTE_STAGE, "size": self.form.push_bytes})
            about.pushConstantRangeCount, about.pPushConstantRanges = 1, pushed
        api.call("vkCreatePipelineLayout", device, about, ffi.NULL, layout)
        self.layout = layout[0]

    def _make_set_layout(self) -> None:
        api, ffi = self.device.api, self.device.api.ffi
        kinds = [STORAGE_BUFFER] * self.form.buffers + [UNIFORM_BUFFER] * (self.form.arguments == "uniform")
        bindings = ffi.new(
            "VkDescriptorSetLayoutBinding[]",
            [
                {"binding": place, "descriptorType": kind, "descriptorCount": 1, "stageFlags": COMPUTE_STAGE}
                for place, kind in enumerate(kinds)
            ],
        )
        info = api.new("VkDescriptorSetLayoutCreateInfo", bindingCount=len(kinds), pBindings=bindings)
        if self.uses_push_descriptors:
            info.flags = _PUSH_DESCRIPTOR_LAYOUT
        made = ffi.new("VkDescriptorSetLayout *")
        api.call("vkCreateDescriptorSetLayout", self.device.handle, info, ffi.NULL, made)
        self.set_layout = made[0]

    def update_template(self) -> Any:
        """The template for pushing all descriptors at once, made at first use; None where there are none. Raises VulkanError."""
        count = self.form.buffers + (self.form.arguments == "uniform")
        if self.template is None and self.uses_push_descriptors and count:
            api, ffi = self.device.api, self.device.api.ffi
            size = ffi.sizeof("VkDescriptorBufferInfo")
            entries = ffi.new(
                "VkDescriptorUpdateTemplateEntry[]",
                [
                    {
                        "dstBinding": place,
                        "descriptorCount": 1,
                        "descriptorType": STORAGE_BUFFER if place < self.form.buffers else UNIFORM_BUFFER,
                        "offset": size * place,
                        "stride": size,
                    }
                    for place in range(count)
                ],
            )
            info = api.new(
                "VkDescriptorUpdateTemplateCreateInfo",
                descriptorUpdateEntryCount=count,
                pDescriptorUpdateEntries=entries,
                templateType=_FOR_PUSH_DESCRIPTORS,
                pipelineBindPoint=COMPUTE,
                pipelineLayout=self.layout,
            )
            made = ffi.new("VkDescriptorUpdateTemplate *")
            api.call("vkCreateDescriptorUpdateTemplate", self.device.handle, info, ffi.NULL, made)
            self.template = made[0]
        return self.template

    def pipeline(self, block: tuple[int, int, int], dynamic_shared: int) -> Any:
        """The pipeline for blocks of that many threads and so many bytes of dynamic shared memory."""
        values = {place: size for place, size in enumerate(block) if self.record.block[place] == 0}
        if self.form.dynamic_element:
            values[3] = max(1, -(-dynamic_shared // self.form.dynamic_element))
        if self.form.asserts:
            values |= {4: self.report_address & 0xFFFFFFFF, 5: self.report_address >> 32}
        key = tuple(number for pair in sorted(values.items()) for number in pair)
        found = self._pipelines.get(key)
        if found is None:
            with without_interrupts(), self._lock:
                found = self._pipelines.get(key)
                if found is None:
                    found = self._pipelines[key] = self._make_pipeline(values)
        return found

    def _make_pipeline(self, values: dict[int, int]) -> Any:
        if self.module is None:
            raise DeviceGoneError(self.device.name, "was closed")
        api, ffi = self.device.api, self.device.api.ffi
        name = ffi.new("char[]", self.record.entry.encode())
        stage = api.new("VkPipelineShaderStageCreateInfo", stage=COMPUTE_STAGE, module=self.module, pName=name)
        numbers = sorted(values)
        entries = ffi.new(
            "VkSpecializationMapEntry[]",
            [{"constantID": number, "offset": 4 * place, "size": 4} for place, number in enumerate(numbers)],
        )
        data = ffi.new("uint32_t[]", [values[number] for number in numbers])
        special = ffi.new("VkSpecializationInfo *")
        if values:
            special.mapEntryCount, special.pMapEntries = len(numbers), entries
            special.dataSize, special.pData = 4 * len(numbers), data
            stage.pSpecializationInfo = special
        subgroups = api.new(
            "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo", requiredSubgroupSize=self.form.subgroup
        )
        if self.form.subgroup and "subgroup_size_control" in self.device.features:
            stage.pNext = subgroups
            # The code of such kernels has the threads of a block in one row along x.
            threads = math.prod(values.get(axis, size) for axis, size in enumerate(self.record.block))
            if "full_subgroups" in self.device.features and threads % self.form.subgroup == 0:
                stage.flags = _REQUIRE_FULL_SUBGROUPS
        info = api.new("VkComputePipelineCreateInfo", stage=stage[0], layout=self.layout)
        made = ffi.new("VkPipeline *")
        api.call("vkCreateComputePipelines", self.device.handle, self._cache.handle, 1, info, ffi.NULL, made)
        self._cache.note(made[0], self.record.name)
        return made[0]

    def destroy(self) -> None:
        """Destroy all of it; nothing may use it any more."""
        api, null, device = self.device.api, self.device.api.ffi.NULL, self.device.handle
        with self._lock:
            for pipeline in self._pipelines.values():
                api.run("vkDestroyPipeline", device, pipeline, null)
            self._pipelines.clear()
            for name, handle in (
                ("vkDestroyDescriptorUpdateTemplate", self.template),
                ("vkDestroyPipelineLayout", self.layout),
                ("vkDestroyDescriptorSetLayout", self.set_layout),
                ("vkDestroyShaderModule", self.module),
            ):
                if handle is not None:
                    api.run(name, device, handle, null)
            self.template = self.layout = self.set_layout = self.module = None
